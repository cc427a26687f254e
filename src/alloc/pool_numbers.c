/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of one pool at run time.
 *
 * Peaks: those of the counters serve the policy and the recording, and never fall; `recent` is kept in addition and can
 * be reset.  Streams: a sum per stream would cost every hit; instead the query walks the blocks.
 */
#include "alloc/pool.h"
#include "stats/counters.h"

void gpc_pool_reset_peaks(struct gpc_pool *pool)
{
	gpc_lock_take(&pool->lock);
	gpc_counter_set(
		&pool->recent.requested_bytes, gpc_counter_get(&pool->counters->requested_bytes));
	gpc_counter_set(&pool->recent.live_bytes, gpc_counter_get(&pool->counters->live_bytes));
	gpc_counter_set(
		&pool->recent.reserved_bytes, gpc_counter_get(&pool->counters->reserved_bytes));
	gpc_lock_release(&pool->lock);
}

void gpc_pool_count_stream(
	struct gpc_pool *pool, gpc_stream stream, uint64_t *bytes, uint64_t *n_blocks)
{
	gpc_lock_take(&pool->lock);
	gpc_list_each (at, &pool->segments) {
		const struct gpc_segment *segment = gpc_list_entry(at, struct gpc_segment, link);

		for (const struct gpc_block *block = segment->first; block; block = block->next) {
			if (block->state != GPC_BLOCK_LIVE || !block->is_told ||
				block->stream != stream)
				continue;
			*bytes += block->requested;
			++*n_blocks;
		}
	}
	gpc_lock_release(&pool->lock);
}
