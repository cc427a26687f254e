/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own memory: straight from the kernel, bounded, never from the host's malloc.
 *
 * gpc_metamem_map gives whole pages.  A struct gpc_slab cuts them into items of one size and
 * numbers the items: item i keeps its number for good, so that a table elsewhere (the recording's
 * live table) can mirror it slot by slot.
 *
 *      chunk 0 [ item 0 | item 1 | ... ]   chunk 1 [ item n | ... ]   ...   freed items form a stack
 *
 * Invariants  1 Items are zeroed when handed out.  2 The lowest numbers are handed out first as
 *               long as nothing was freed; after that the last freed one is.  3 Chunks are never
 *               unmapped before fini.
 * Threads     A slab has its own lock (rank METAMEM).  gpc_slab_get needs none for an item that
 *             lives.
 * Failure     NULL where the kernel has no pages, the limit is reached, or a test asks for it.
 */
#ifndef GPC_BASE_METAMEM_H
#define GPC_BASE_METAMEM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

/* Zeroed pages; NULL where there are none. */
void *gpc_metamem_map(size_t size);
void gpc_metamem_unmap(void *ptr, size_t size);

/* Bytes mapped by all of the library at this moment. */
size_t gpc_metamem_total(void);

/* For tests: the n-th gpc_metamem_map from now fails, and all after it until 0 is given. */
void gpc_metamem_fail_at(unsigned n);

#define GPC_SLAB_MAX_CHUNKS 64
#define GPC_SLAB_NONE       UINT32_MAX

struct gpc_slab {
	/* Fixed after init. */
	uint32_t item_size;
	/* a power of two; chunk k > 0 holds first_chunk_items << (k - 1) */
	uint32_t first_chunk_items;
	uint32_t max_items;

	/* Lock: lock.  The chunk pointers are read without it. */
	_Atomic(char *) chunks[GPC_SLAB_MAX_CHUNKS];
	uint32_t n_used;   /* numbers handed out at least once */
	uint32_t free_top; /* the last freed number; its first 4 bytes hold the next one, + 1 */
	uint32_t n_live;

	struct gpc_lock lock;
};

/* Items of item_size >= 8 bytes (rounded up to 8), at most max_items of them. */
void gpc_slab_init(
	struct gpc_slab *slab, size_t item_size, uint32_t first_chunk_items, uint32_t max_items);
void gpc_slab_fini(struct gpc_slab *slab);

/* A zeroed item and its number, or NULL. */
void *gpc_slab_take(struct gpc_slab *slab, uint32_t *ret_number);
void gpc_slab_give_back(struct gpc_slab *slab, uint32_t number);

/* The item with that number, which must have been handed out. */
void *gpc_slab_get(struct gpc_slab *slab, uint32_t number);

#endif
