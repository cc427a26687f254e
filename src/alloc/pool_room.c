/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be lost of the room that the device has.
 *
 * A piece that is cut from an idle segment pins the rest of it: the rest goes neither to a larger request
 * nor back to the driver until the piece is freed.  While there is plenty that does not matter, and to cut
 * saves a call of the driver.  Where the program needs all that there is, it would run out of memory
 * on a device on which it fits without us.  Nobody knows what it will need; but it has already needed
 *
 *      most    the most that was live at a time
 *      room    what this pool could have: its segments, and what the device had free at the last look
 *
 *      0            most                                       room
 *      |-------------|--------------- slack ---------------------|
 *
 * and what is at stake, all segments that are cut, stays below 2/5 of the slack.  A whole segment that is
 * somewhat too large may be given uncut instead: nothing is pinned then, and all that is wasted so stays
 * below 1/50 of the room.  docs/memory-policy.md has what this costs and saves, and what else was tried.
 *
 * The driver is asked what is free when segments have come or gone for 1/8 of the room, and when it refused
 * what there should have been room for.
 */
#include "alloc/pool_internal.h"
#include "stats/counters.h"

#define CUT_NUMERATOR   2
#define CUT_DENOMINATOR 5
#define WASTE_PART      50 /* of the room, for all blocks together */
#define LOOK_PART       8  /* of the room: how far our own books may run on */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void gpc_pool_look_for_room(struct gpc_pool *pool, uint64_t refused)
{
	struct gpc_budget *budget = pool->budget;
	uint64_t room = atomic_load(&budget->room_bytes);
	uint64_t used = atomic_load(&budget->used_bytes);
	bool must = refused && used + refused <= room;
	uint64_t available;
	uint64_t total;

	if (!must && room &&
		distance(used, atomic_load(&budget->looked_at_bytes)) <= room / LOOK_PART)
		return;
	if (gpc_captures_is_any_open(&pool->heap->captures) ||
		pool->drv->ops->mem_info(pool->drv, &available, &total))
		return;
	atomic_store(&budget->room_bytes, used + available);
	atomic_store(&budget->looked_at_bytes, used);
}

/* What this pool could have, all others on the device and its limit left as they are; UINT64_MAX: unknown. */
static uint64_t room_of(const struct gpc_pool *pool)
{
	uint64_t limit = atomic_load_explicit(&pool->budget->limit_bytes, memory_order_relaxed);
	uint64_t room = atomic_load_explicit(&pool->budget->room_bytes, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&pool->budget->used_bytes, memory_order_relaxed);
	uint64_t own = gpc_counter_get(&pool->counters->reserved_bytes);

	if (room == 0)
		return UINT64_MAX;
	return gpc_bytes_less(limit && limit < room ? limit : room, gpc_bytes_less(used, own));
}

bool gpc_pool_may_cut(const struct gpc_pool *pool, uint64_t segment_size)
{
	uint64_t most = gpc_counter_get(&pool->counters->peak_live_bytes);
	uint64_t cut = gpc_counter_get(&pool->cut_bytes);

	return cut + segment_size <=
	       gpc_bytes_less(room_of(pool), most) / CUT_DENOMINATOR * CUT_NUMERATOR;
}

bool gpc_pool_has_waste_left(const struct gpc_pool *pool, uint64_t bytes)
{
	uint64_t wasted = gpc_bytes_less(gpc_counter_get(&pool->counters->live_bytes),
		gpc_counter_get(&pool->counters->requested_bytes));

	return wasted + bytes <= room_of(pool) / WASTE_PART;
}

bool gpc_pool_may_waste(const struct gpc_pool *pool, uint64_t size, uint64_t rounded)
{
	return size <= rounded + rounded / 2 && gpc_pool_has_waste_left(pool, size - rounded);
}
