/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an array takes, from its descriptor.
 *
 * The driver does not say how large an array is, and asking what is free around the call would
 * count what other threads do meanwhile.  So it is computed: texels, and the layout that the
 * hardware reads textures in, blocks of 64 bytes by 8 rows.
 *
 *      asked   texels of all levels and layers, times their bits
 *      held    each row rounded up to 64 bytes, and the rows of a level to 8 where there are
 *              several
 *
 * Threads   Any.
 * Failure   Both are 0 where no driver makes such an array: a side beyond 2^19, an unknown format;
 *           and for arrays that have no memory of their own (sparse, deferred mapping).
 * Limits    The driver may round further, to its pages; those bytes show as the process's own
 *           outside the books.
 */
#ifndef GPC_DRIVER_ARRAY_BYTES_H
#define GPC_DRIVER_ARRAY_BYTES_H

#include "driver/cuda_abi.h"

struct gpc_array_bytes {
	uint64_t asked;
	uint64_t held;
};

/* An array of n_levels >= 1 mipmap levels; as many as its sides can be halved, at most. */
struct gpc_array_bytes gpc_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n_levels);

#endif
