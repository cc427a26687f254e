/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of device memory in the host: kept only if the program could tell.
 *
 * Memory that was never written takes none of the host's, and reads as zeros.  Kernels write nothing, so that what
 * fills a large model's memory are zeros and copies:
 *
 *      zeros, 64 KiB and more     give the pages back
 *      copies, 64 KiB and more    piece by piece: zeros give the page back, the rest is kept, as long as no more than
 *                                 `keep` bytes are in all; beyond, the copy is dropped, and what is read there is stale
 *      whatever is smaller        is written
 *
 * Invariants  1 Up to `keep` bytes of data, lazy and full are indistinguishable.  2 What is dropped is counted, and a read of it,
 *             too.
 * Threads     The lock of the effects.
 * Failure     A page that the kernel does not take back is filled with zeros instead.
 * Limits      Counted in chunks of 2 MiB: one byte of data is a chunk.  A freed chunk counts until zeros give it back.
 */
#ifndef GPC_SIM_DATA_H
#define GPC_SIM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_sim;

enum gpc_sim_chunk_data {
	GPC_SIM_DATA_ZEROS, /* or no more than pieces that are always written */
	GPC_SIM_DATA_KEPT,
	GPC_SIM_DATA_DROPPED, /* some of it */
};

struct gpc_sim_data {
	bool is_full; /* fixed: everything is written */
	uint64_t keep;

	/* Lock: that of the effects. */
	unsigned char *chunks; /* of all devices, then of mapped memory */
	uint64_t kept;         /* bytes in chunks */
	uint64_t dropped;      /* bytes that were not written */
	bool dropped_was_read;
};

/* False if the kernel gives no table. */
bool gpc_sim_data_init(struct gpc_sim *sim);
void gpc_sim_data_fini(struct gpc_sim *sim);

/* A fill with zeros, and a copy, at the bytes of device memory or of the host's; `src` may be either, too. */
void gpc_sim_data_zero(struct gpc_sim *sim, char *dst, uint64_t size);
void gpc_sim_data_copy(struct gpc_sim *sim, char *dst, const char *src, uint64_t size);

#endif
