/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata memory: mapped from the kernel, bounded, never from the host's malloc.
 *
 * gpc_metamem_map maps whole pages.  A struct gpc_slab cuts them into items of one size.  An item keeps its number, so
 * a table elsewhere (BLOCKS of the recording) can mirror item i in slot i.
 *
 *      chunk 0 [ item 0 | item 1 | ... ]   chunk 1 [ item n | ... ]   ...   freed items form a stack
 *
 * Invariants  1 Items are zeroed when handed out.  2 A taken item has the number freed last, or, if none
 *               is free, the lowest unused one.  3 Chunks are never unmapped before fini.
 * Threads     A slab has its own lock (rank METAMEM).  gpc_slab_get of a live item needs none.
 * Failure     NULL if the kernel has no pages, the limit is reached, or a test injects a failure.
 */
#ifndef GPC_BASE_METAMEM_H
#define GPC_BASE_METAMEM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

/* Maps zeroed pages; NULL if that fails. */
void *gpc_metamem_map(size_t size);
void gpc_metamem_unmap(void *ptr, size_t size); /* NULL: no-op */

/* The bytes that gpc_metamem_map has mapped and that are not unmapped yet. */
size_t gpc_metamem_total(void);

/* For tests: the n-th gpc_metamem_map from now and all after it fail, until this function is called with 0. */
void gpc_metamem_fail_at(unsigned n);

/* For tests: if bit n - 1 of the mask is set, the n-th gpc_metamem_map from now fails. */
void gpc_metamem_fail_each(uint64_t mask);

#define GPC_SLAB_MAX_CHUNKS 32 /* enough for 2^31 items */
#define GPC_SLAB_NONE       UINT32_MAX

struct gpc_slab {
	/* Constant. */
	uint32_t item_size;
	/* a power of two; chunk k > 0 holds first_chunk_items << (k - 1) */
	uint32_t first_chunk_items;
	uint32_t max_items;

	/* Lock: lock.  The chunk pointers are read without it. */
	_Atomic(char *) chunks[GPC_SLAB_MAX_CHUNKS];
	uint32_t n_used; /* numbers that were given to an item at least once */
	/* the number of the item freed last; the first 4 bytes of a free item hold 1 + the number of the next one */
	uint32_t free_top;
	uint32_t n_live;

	struct gpc_lock lock;
};

/*
 * The initializer of a slab of at most `max` items of this type, which is at least 4 bytes large.  The first chunk has
 * `first` items, a power of two.
 */
#define GPC_SLAB_INIT(type, first, max)                                                \
	{                                                                              \
		.item_size = (sizeof(type) + 7) / 8 * 8, .first_chunk_items = (first), \
		.max_items = (max), .free_top = GPC_SLAB_NONE,                         \
		.lock = GPC_LOCK_INIT(GPC_RANK_METAMEM)                                \
	}

/* Unmaps all items. */
void gpc_slab_fini(struct gpc_slab *slab);

/* Takes a zeroed item and its number, or returns NULL. */
void *gpc_slab_take(struct gpc_slab *slab, uint32_t *ret_number);
void gpc_slab_give_back(struct gpc_slab *slab, uint32_t number);

/* The item with this number, which the caller has taken and not given back. */
void *gpc_slab_get(struct gpc_slab *slab, uint32_t number);

#endif
