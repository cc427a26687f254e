/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of device memory: which bytes take memory of the host.
 *
 * Device memory that was never written takes no host memory and reads as zeros.  A program's kernels have no effect
 * here, so only its memsets and copies fill host memory:
 *
 *      memset to 0     returns the pages to the kernel
 *      copy            the pages of zeros go back to the kernel; other data is stored up to `keep` bytes in all, then
 *                      dropped: reads return stale bytes
 *      other memsets   are stored and not counted
 *
 * The first two work in pieces of 64 KiB, aligned at the destination.  What they write before the first and after the
 * last whole piece is stored and not counted.
 *
 * Invariants  1 Until data is dropped, a program reads the same bytes as with `is_full`, which stores everything.
 *             2 `dropped` counts dropped bytes; `dropped_was_read` is set when a copy to the host reads from a chunk
 *               that has such bytes.
 * Threads     gpc_sim_data_zero and gpc_sim_data_copy: with the lock of effect.h held.
 * Failure     A page that the kernel does not take back is filled with zeros instead.
 * Limits      `kept` counts chunks of 2 MiB: one stored piece counts as a whole chunk.  The chunk counts until one
 *             memset sets all of it to 0, even if its memory is freed.
 */
#ifndef GPC_SIM_DATA_H
#define GPC_SIM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_sim;

enum gpc_sim_chunk_data {
	GPC_SIM_DATA_ZEROS,   /* zeros, or data that is stored and not counted */
	GPC_SIM_DATA_KEPT,    /* stored and counted */
	GPC_SIM_DATA_DROPPED, /* some of the chunk's data was not stored */
};

struct gpc_sim_data {
	/* Fixed after init: gpc_sim_config's is_data_full and keep. */
	bool is_full;
	uint64_t keep;

	/* Lock: that of effect.h. */
	unsigned char *chunks; /* enum gpc_sim_chunk_data: of all devices, then of mapped memory */
	uint64_t kept;         /* bytes of the chunks that are KEPT */
	uint64_t dropped;      /* bytes that were not stored */
	bool dropped_was_read;
};

/* False if there is no memory for the table of chunks. */
bool gpc_sim_data_init(struct gpc_sim *sim);
void gpc_sim_data_fini(struct gpc_sim *sim);

/* Sets dst[0 .. size) to 0; `dst` is the host's address of device memory, or host memory. */
void gpc_sim_data_zero(struct gpc_sim *sim, char *dst, uint64_t size);

/* Copies src[0 .. size) to `dst`; each is the host's address of device memory, or host memory. */
void gpc_sim_data_copy(struct gpc_sim *sim, char *dst, const char *src, uint64_t size);

#endif
