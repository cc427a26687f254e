/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages come from mmap and are counted.  The chunks of a slab double in size, so the highest bit of an item's number
 * tells its chunk, without a lock.  Each freed item holds the number of the next one: they form a stack.  Take and give
 * back are O(1) under the slab's lock.
 */
#include "base/metamem.h"

#include <string.h>
#include <sys/mman.h>

#include "base/check.h"

typedef uint64_t word_of_item __attribute__((may_alias));

static struct {
	atomic_size_t total;
	atomic_uint fail_at;        /* 0: no mapping fails; 1: the next one and all after it fail */
	_Atomic uint64_t fail_each; /* bit 0: the next mapping fails */
} metamem;

static bool is_failing(void)
{
	unsigned n = atomic_load_explicit(&metamem.fail_at, memory_order_relaxed);
	uint64_t each;

	if (n > 1)
		atomic_store_explicit(&metamem.fail_at, n - 1, memory_order_relaxed);
	each = atomic_load_explicit(&metamem.fail_each, memory_order_relaxed);
	atomic_store_explicit(&metamem.fail_each, each >> 1, memory_order_relaxed);
	return n == 1 || (each & 1);
}

void *gpc_metamem_map(size_t size)
{
	void *ptr;

	if (is_failing())
		return NULL;
	ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED)
		return NULL;
	atomic_fetch_add(&metamem.total, size);
	return ptr;
}

void gpc_metamem_unmap(void *ptr, size_t size)
{
	if (!ptr)
		return;
	munmap(ptr, size);
	atomic_fetch_sub(&metamem.total, size);
}

size_t gpc_metamem_total(void)
{
	return atomic_load(&metamem.total);
}

void gpc_metamem_fail_at(unsigned n)
{
	atomic_store(&metamem.fail_at, n);
}

void gpc_metamem_fail_each(uint64_t mask)
{
	atomic_store(&metamem.fail_each, mask);
}

static uint32_t chunk_items(const struct gpc_slab *slab, uint32_t chunk)
{
	return chunk == 0 ? slab->first_chunk_items : slab->first_chunk_items << (chunk - 1);
}

/* Chunk k > 0 starts at number first_chunk_items << (k - 1): as many items are in the chunks before it. */
static void locate(
	const struct gpc_slab *slab, uint32_t number, uint32_t *ret_chunk, uint32_t *ret_index)
{
	uint32_t ratio = number >> __builtin_ctz(slab->first_chunk_items);

	if (ratio == 0) {
		*ret_chunk = 0;
		*ret_index = number;
		return;
	}
	*ret_chunk = 32 - (uint32_t)__builtin_clz(ratio);
	*ret_index = number - (slab->first_chunk_items << (*ret_chunk - 1));
}

void gpc_slab_fini(struct gpc_slab *slab)
{
	for (uint32_t i = 0; i < GPC_SLAB_MAX_CHUNKS; i++) {
		char *chunk = atomic_load_explicit(&slab->chunks[i], memory_order_relaxed);

		gpc_metamem_unmap(chunk, (size_t)chunk_items(slab, i) * slab->item_size);
	}
	memset(slab, 0, sizeof *slab);
}

void *gpc_slab_get(struct gpc_slab *slab, uint32_t number)
{
	uint32_t chunk;
	uint32_t index;

	locate(slab, number, &chunk, &index);
	return atomic_load_explicit(&slab->chunks[chunk], memory_order_acquire) +
	       (size_t)index * slab->item_size;
}

static void *take_new_locked(struct gpc_slab *slab, uint32_t *ret_number)
{
	uint32_t number = slab->n_used;
	uint32_t chunk;
	uint32_t index;

	if (number >= slab->max_items)
		return NULL;
	locate(slab, number, &chunk, &index);
	if (chunk >= GPC_SLAB_MAX_CHUNKS)
		return NULL;
	if (!atomic_load_explicit(&slab->chunks[chunk], memory_order_relaxed)) {
		char *memory = gpc_metamem_map((size_t)chunk_items(slab, chunk) * slab->item_size);

		if (!memory)
			return NULL;
		atomic_store_explicit(&slab->chunks[chunk], memory, memory_order_release);
	}
	slab->n_used++;
	*ret_number = number;
	return gpc_slab_get(slab, number); /* fresh pages are zero */
}

/* Zeroes by atomic stores, because an item that was given back may still be read without a lock (segment_map.h). */
static void *take_freed_locked(struct gpc_slab *slab, uint32_t *ret_number)
{
	uint32_t number = slab->free_top;
	void *item = gpc_slab_get(slab, number);
	word_of_item *word = item;
	uint32_t next_plus_1;

	memcpy(&next_plus_1, item, sizeof next_plus_1);
	slab->free_top = next_plus_1 - 1; /* 0 - 1 is GPC_SLAB_NONE */
	for (uint32_t i = 0; i < slab->item_size / sizeof *word; i++)
		__atomic_store_n(word + i, 0, __ATOMIC_RELAXED);
	*ret_number = number;
	return item;
}

void *gpc_slab_take(struct gpc_slab *slab, uint32_t *ret_number)
{
	void *item;

	gpc_lock_take(&slab->lock);
	if (slab->free_top != GPC_SLAB_NONE)
		item = take_freed_locked(slab, ret_number);
	else
		item = take_new_locked(slab, ret_number);
	if (item)
		slab->n_live++;
	gpc_lock_release(&slab->lock);
	return item;
}

void gpc_slab_give_back(struct gpc_slab *slab, uint32_t number)
{
	uint32_t next_plus_1;

	gpc_lock_take(&slab->lock);
	GPC_CHECK(number < slab->n_used);
	next_plus_1 = slab->free_top + 1;
	memcpy(gpc_slab_get(slab, number), &next_plus_1, sizeof next_plus_1);
	slab->free_top = number;
	slab->n_live--;
	gpc_lock_release(&slab->lock);
}
