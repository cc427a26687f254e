/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds how much of the device's memory fragmentation may cost.
 *
 * A piece cut from an idle segment pins the remainder: until the piece is freed, the remainder can neither serve a
 * larger request nor go back to the driver.  While memory is plentiful that does not matter, and cutting saves a driver
 * call.  But a program that needs the whole device would run out of memory although it fits without us.  How much the
 * program will need is unknown.  Known are
 *
 *      most    the most that was live at a time
 *      room    what this pool could have: its segments, and what the device had free when last asked
 *
 *      0            most                                       room
 *      |-------------|--------------- slack ---------------------|
 *
 * So a segment is cut only while all cut segments together, whose remainders may be pinned, take at most 2/5 of the
 * slack.  Otherwise a whole segment that is somewhat too large may be handed out uncut: that pins no remainder, and all
 * such waste together takes at most 1/50 of the room.  docs/memory-policy.md has the costs and savings, and the
 * alternatives that were tried.
 *
 * The driver is asked for its free memory after 1/8 of the room has been taken or returned, and after it refused a
 * request for which there should have been room.
 */
#include "alloc/pool_internal.h"
#include "stats/counters.h"

#define CUT_NUMERATOR   2
#define CUT_DENOMINATOR 5
#define WASTE_PART      50 /* all blocks together waste at most 1 / WASTE_PART of the room */
#define SHORT_PART      8  /* idle memory over 1 / SHORT_PART of what is free may be needed */
#define LOOK_PART       8  /* the driver is asked again after 1 / LOOK_PART of the room has moved */

void gpc_pool_look_for_room(struct gpc_pool *pool, uint64_t refused)
{
	struct gpc_budget *budget = pool->budget;
	uint64_t room = atomic_load(&budget->room_bytes);
	uint64_t used = atomic_load(&budget->used_bytes);
	bool must = refused && used + refused <= room;
	uint64_t available;
	uint64_t total;

	if (!must && room &&
		gpc_distance(used, atomic_load(&budget->looked_at_bytes)) <= room / LOOK_PART)
		return;
	if (gpc_captures_is_any_open(&pool->heap->captures) ||
		pool->drv->ops->mem_info(pool->drv, &available, &total))
		return;
	atomic_store(&budget->room_bytes, used + available);
	atomic_store(&budget->looked_at_bytes, used);
}

/* The bytes that this pool could have, within the limit, if the other pools keep theirs; UINT64_MAX: unknown. */
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

bool gpc_pool_may_be_short(const struct gpc_pool *pool, uint64_t bytes)
{
	uint64_t reserved = gpc_counter_get(&pool->counters->reserved_bytes);
	uint64_t cached = gpc_counter_get(&pool->counters->cached_bytes);

	return gpc_bytes_less(room_of(pool), reserved) / SHORT_PART < cached + bytes;
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
