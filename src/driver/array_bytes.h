/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of an array, from its descriptor.
 *
 * The driver does not report the size of an array.  Free memory before and after the call would not tell it either,
 * because other threads allocate meanwhile.  So the size is computed from the texels and from the layout of textures in
 * hardware, blocks of 64 bytes by 8 rows.
 *
 *      asked   the bytes of the texels of all levels and layers
 *      held    the same with each row rounded up to 64 bytes, and a number of rows above 1 to a multiple of 8
 *
 * Threads   Any.
 * Failure   Both sizes are 0 for arrays that no driver makes (a side beyond 2^19, an unknown format) and for arrays
 *           without memory of their own (sparse, deferred mapping).
 * Limits    The driver may round the size up to its pages.  The difference counts as untracked memory of the process.
 */
#ifndef GPC_DRIVER_ARRAY_BYTES_H
#define GPC_DRIVER_ARRAY_BYTES_H

#include "driver/cuda_abi.h"

struct gpc_array_bytes {
	uint64_t asked;
	uint64_t held;
};

/* `n_levels` >= 1: the mipmap levels; levels after the one whose sides are all 1 are ignored. */
struct gpc_array_bytes gpc_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n_levels);

#endif
