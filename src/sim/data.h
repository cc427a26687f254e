/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of device memory in the host: kept only if the program could tell.
 *
 * Device memory that was never written takes no host memory and reads as zeros.  A program's kernels write nothing
 * here, so only memsets and copies can fill the host's memory:
 *
 *      memset to 0, 64 KiB and more    gives the pages back to the operating system
 *      copy, 64 KiB and more           in pieces of 64 KiB: a piece of zeros gives its pages back; other data is kept
 *                                      up to `keep` bytes in all, then dropped: later reads there return stale bytes
 *      anything else                   is written
 *
 * Invariants  1 Until data is dropped, a program cannot tell this from `is_full`, which writes everything.
 *             2 Dropped bytes are counted, and a copy to the host that reads them is noted.
 * Threads     The lock of the effects.
 * Failure     A page that the operating system does not take back is filled with zeros instead.
 * Limits      Data is counted in chunks of 2 MiB: one kept piece counts as a chunk.  A freed chunk counts until it is
 *             set to 0.
 */
#ifndef GPC_SIM_DATA_H
#define GPC_SIM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_sim;

enum gpc_sim_chunk_data {
	GPC_SIM_DATA_ZEROS, /* or data that is written without being counted */
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

/* False if there is no memory for the table of chunks. */
bool gpc_sim_data_init(struct gpc_sim *sim);
void gpc_sim_data_fini(struct gpc_sim *sim);

/* Sets dst[0 .. size) to 0; `dst` is the host's address of device memory, or host memory. */
void gpc_sim_data_zero(struct gpc_sim *sim, char *dst, uint64_t size);

/* Copies src[0 .. size) to `dst`; each is the host's address of device memory, or host memory. */
void gpc_sim_data_copy(struct gpc_sim *sim, char *dst, const char *src, uint64_t size);

#endif
