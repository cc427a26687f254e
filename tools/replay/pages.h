/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: one range of addresses to which handles of 2 MiB are mapped where blocks need them.
 *
 *      blocks   |   A   |     B     |   gap     | C |     gap            ...
 *      pages    | 0 | 1 | 2 | 3 | 4 | . | 6 | . | 8 | . | . | 11 | ...
 *                     ^ shared by A and B         ^ idle: 6 and 11, no block lies on them
 *
 * Blocks lie next to each other without regard to pages, so a page that two share counts once.  What is wholly
 * idle moves to where it is needed: unmapped here, mapped there.  So the range never takes more of the device
 * than the blocks and what was idle; only addresses are lost between them, and there are plenty.
 *
 * The rules of the driver: a handle is never split, is mapped whole, and loses its access with the mapping.
 *
 * Invariants  1 A page that a block lies on is mapped.  2 Blocks do not overlap.
 * Threads     One.
 * Failure     gpc_pages_alloc: GPC_DEVICE_NO_MEMORY, GPC_NO_METADATA; the range is as before.
 * Limits      A model for gpumem-replay: a search looks at every gap.
 */
#ifndef GPC_REPLAY_PAGES_H
#define GPC_REPLAY_PAGES_H

#include "tools/replay/machine.h"

#define GPC_PAGE_BYTES UINT64_C(0x200000)

struct gpc_pages_block {
	uint64_t offset;
	uint64_t size;
};

struct gpc_pages {
	struct gpc_machine *machine;
	uint64_t address; /* of the range */
	uint32_t n_pages; /* of the range */
	bool *is_mapped;  /* each page */
	uint32_t *n_on;   /* blocks on each page */
	uint32_t n_mapped;
	uint32_t n_idle;                /* mapped, and no block on them */
	struct gpc_pages_block *blocks; /* in order of their addresses */
	uint32_t n_blocks;
	uint32_t max_blocks;
	uint64_t n_moves;
	bool is_unsettled; /* work that was submitted before a free may still run */
};

GPC_MUST_CHECK enum gpc_status gpc_pages_init(
	struct gpc_pages *pages, struct gpc_machine *machine, uint64_t address, uint64_t size);
void gpc_pages_fini(struct gpc_pages *pages);

GPC_MUST_CHECK enum gpc_status gpc_pages_alloc(
	struct gpc_pages *pages, uint64_t size, uint64_t *ret_address);

/* GPC_NOT_FOUND: no block starts here. */
GPC_MUST_CHECK enum gpc_status gpc_pages_free(struct gpc_pages *pages, uint64_t address);

/* Gives idle pages back until at least `wanted` bytes went.  Returns the bytes that went. */
uint64_t gpc_pages_trim(struct gpc_pages *pages, uint64_t wanted);

/* NULL, or the invariant that is broken. */
const char *gpc_pages_check(const struct gpc_pages *pages);

#endif
