/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/growth.h"

#include <stdbool.h>

#include "base/held.h"
#include "base/saturating.h"

/* Allocations before the first moment: a leak of large blocks fills a device within some dozen. */
#define FIRST_STEP 2

/* What a site keeps of each window. */
struct kept {
	uint64_t n_blocks;
	uint64_t bytes;
	uint32_t windows; /* bit w: something of window w */
};

void gpc_growth_init(struct gpc_growth *growth)
{
	*growth = (struct gpc_growth){ .step = FIRST_STEP, .is_busy = ATOMIC_FLAG_INIT };
	atomic_store(&growth->next, FIRST_STEP);
}

/* Keeps every second moment: the distance between them doubles. */
static uint32_t thin(struct gpc_growth *growth)
{
	for (uint32_t i = 0; i < GPC_GROWTH_ROWS / 2; i++)
		__atomic_store_n(&growth->times_ns[i],
			__atomic_load_n(&growth->times_ns[2 * i + 1], __ATOMIC_RELAXED),
			__ATOMIC_RELAXED);
	growth->step *= 2;
	return GPC_GROWTH_ROWS / 2;
}

void gpc_growth_take_moment(struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns)
{
	uint32_t n;

	if (atomic_flag_test_and_set_explicit(&growth->is_busy, memory_order_acquire))
		return;
	n = atomic_load(&growth->n_times);
	if (n == GPC_GROWTH_ROWS) {
		n = thin(growth);
		atomic_store(&growth->n_times, n);
	}
	__atomic_store_n(&growth->times_ns[n], now_ns, __ATOMIC_RELAXED);
	atomic_store_explicit(&growth->n_times, n + 1, memory_order_release);
	atomic_store(&growth->next, n_mallocs + growth->step);
	atomic_flag_clear_explicit(&growth->is_busy, memory_order_release);
}

/* The window in which a block was asked for, the oldest first; false: before them all. */
static bool window_of(const uint64_t *times_ns, uint64_t time_ns, uint32_t *ret_window)
{
	uint32_t w = GPC_GROWTH_WINDOWS;

	while (w > 0 && time_ns <= times_ns[w - 1])
		w--;
	if (w == 0)
		return false;
	*ret_window = w - 1;
	return true;
}

static void keep(struct kept *kept, const struct gpucache_holder *holders, uint32_t n_holders,
	const struct gpucache_block *block, uint32_t window)
{
	for (uint32_t i = 0; i < n_holders; i++) {
		if (holders[i].stack != block->stack)
			continue;
		kept[i].bytes = gpc_bytes_add(kept[i].bytes, block->requested);
		kept[i].n_blocks++;
		kept[i].windows |= 1u << window;
		return;
	}
}

/* The steady site that keeps most. */
static struct gpc_growing choose(
	const struct kept *kept, const struct gpucache_holder *holders, uint32_t n_holders)
{
	struct gpc_growing found = { 0 };
	uint64_t all = 0;

	for (uint32_t i = 0; i < n_holders; i++) {
		uint32_t n_up = (uint32_t)__builtin_popcount(kept[i].windows);

		if (n_up < GPC_GROWTH_STEADY)
			continue;
		all = gpc_bytes_add(all, kept[i].bytes);
		if (kept[i].bytes > found.bytes)
			found = (struct gpc_growing){ .stack = holders[i].stack,
				.n_up = n_up,
				.bytes = kept[i].bytes,
				.n_blocks = kept[i].n_blocks };
	}
	found.others_bytes = all - found.bytes;
	return found;
}

struct gpc_growing gpc_growth_find(const struct gpc_growth *growth, uint32_t device,
	const struct gpucache_holder *holders, uint32_t n_holders,
	const struct gpucache_block *blocks, uint32_t n_blocks)
{
	uint32_t n_times = atomic_load_explicit(&growth->n_times, memory_order_acquire);
	struct kept kept[GPC_GROWTH_MAX_SITES] = { 0 };
	uint64_t times_ns[GPC_GROWTH_WINDOWS];
	struct gpucache_block block;
	uint32_t window;

	if (n_times < GPC_GROWTH_WINDOWS)
		return (struct gpc_growing){ 0 };
	if (n_holders > GPC_GROWTH_MAX_SITES)
		n_holders = GPC_GROWTH_MAX_SITES;
	for (uint32_t i = 0; i < GPC_GROWTH_WINDOWS; i++)
		times_ns[i] = __atomic_load_n(
			&growth->times_ns[n_times - GPC_GROWTH_WINDOWS + i], __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n_blocks; i++)
		if (gpc_held_read(&blocks[i], device, &block) &&
			window_of(times_ns, block.time_ns, &window))
			keep(kept, holders, n_holders, &block, window);
	return choose(kept, holders, n_holders);
}

uint64_t gpc_growth_of(const struct gpc_growth *growth, uint32_t device, uint32_t stack,
	const struct gpucache_block *blocks, uint32_t n_blocks)
{
	uint32_t n_times = atomic_load_explicit(&growth->n_times, memory_order_acquire);
	uint32_t first = n_times > GPC_GROWTH_WINDOWS ? n_times - GPC_GROWTH_WINDOWS : 0;
	uint64_t since_ns = __atomic_load_n(&growth->times_ns[first], __ATOMIC_RELAXED);
	struct gpucache_block block;
	uint64_t kept = 0;

	for (uint32_t i = 0; n_times && stack && i < n_blocks; i++)
		if (gpc_held_read(&blocks[i], device, &block) && block.stack == stack &&
			block.time_ns > since_ns)
			kept = gpc_bytes_add(kept, block.requested);
	return kept;
}
