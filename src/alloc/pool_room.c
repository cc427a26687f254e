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
 * slack; and one of more than 1/16 of the slack only for at least 1/8 of it, since a small piece may stay for long.
 * Otherwise, until memory is refused, a whole segment that is somewhat too large may be handed out uncut: that pins no
 * remainder, and all such waste together takes at most 1/16 of the slack.
 *
 * Own segments are not free either: they are multiples of 2 MiB, so a block of 2.25 MiB wastes 1.75.  A medium request
 * therefore also shares a segment while the cut segments have a smaller part stranded than its own would waste.
 *
 * Once memory was refused, unless it was more than all the room, what is stranded drains: a request of whole 2 MiB, which
 * wastes nothing in an own segment, takes only a piece of exactly its size, and one from 10 MiB on only one that it fills
 * to 3/4.  So pieces stay free until their segment is idle and goes back.  If the driver refuses the request, it takes
 * any piece (pool_short.c).
 * docs/inside/MEMORY-POLICY.md has the costs and savings, and the alternatives that were tried.
 *
 * The driver is asked for its free memory after 1/8 of the room has been taken or returned, and after it refused a
 * request for which there should have been room.
 */
#include "alloc/pool_internal.h"
#include "model/counters.h"

#define CUT_NUMERATOR   2
#define CUT_DENOMINATOR 5
#define LARGE_PART      16 /* a segment over 1 / LARGE_PART of the slack is not cut .. */
#define PIECE_PART      8  /* .. for less than 1 / PIECE_PART of it */
#define WASTE_PART      16 /* segments that are too large waste at most 1 / WASTE_PART of the slack */
#define EXPORT_PART \
	50 /* small blocks with own segments waste at most 1 / EXPORT_PART of the room */
#define REST_OF_PIECE 4 /* while pieces drain, a request leaves at most 1 / REST_OF_PIECE of one */
#define REST_PART     200 /* rests over 1 / REST_PART of the room are many */
#define SHORT_PART    8   /* idle memory over 1 / SHORT_PART of what is free may be needed */
#define LOOK_PART     8   /* the driver is asked again after 1 / LOOK_PART of the room has moved */

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

static uint64_t slack_of(const struct gpc_pool *pool)
{
	return gpc_bytes_less(room_of(pool), gpc_counter_get(&pool->counters->peak_live_bytes));
}

/* True if rounding this request up to an own segment wastes a larger part than the cut segments have stranded. */
static bool does_sharing_pay(const struct gpc_pool *pool, uint64_t rounded)
{
	const struct gpucache_counters *counters = pool->counters;
	uint64_t in_use =
		gpc_counter_get(&counters->live_bytes) + gpc_counter_get(&pool->idle_segment_bytes);
	uint64_t stranded = gpc_bytes_less(gpc_counter_get(&counters->reserved_bytes), in_use);
	uint64_t wasted = gpc_size_tight_segment(rounded) - rounded;

	/* In grains, the products fit for any device. */
	return wasted > 0 && stranded / GPC_GRAIN * rounded <=
				     gpc_counter_get(&pool->cut_bytes) / GPC_GRAIN * wasted;
}

/* True if this would pin much of the slack by little. */
static bool is_crumb(uint64_t segment_size, uint64_t rounded, uint64_t slack)
{
	return segment_size > GPC_MEDIUM_SEGMENT && segment_size > slack / LARGE_PART &&
	       rounded < segment_size / PIECE_PART;
}

bool gpc_pool_may_cut(const struct gpc_pool *pool, uint64_t segment_size, uint64_t rounded)
{
	uint64_t cut = gpc_counter_get(&pool->cut_bytes);
	uint64_t slack = slack_of(pool);

	if (is_crumb(segment_size, rounded, slack))
		return false;
	if (cut + segment_size <= slack / CUT_DENOMINATOR * CUT_NUMERATOR)
		return true;
	return gpc_size_is_medium(rounded) && segment_size <= GPC_MEDIUM_SEGMENT &&
	       does_sharing_pay(pool, rounded);
}

void gpc_pool_note_refused(struct gpc_pool *pool, uint64_t size)
{
	if (size <= room_of(pool))
		atomic_store_explicit(&pool->is_pressed, true, memory_order_relaxed);
}

static bool was_refused(const struct gpc_pool *pool)
{
	return atomic_load_explicit(&pool->is_pressed, memory_order_relaxed);
}

bool gpc_pool_may_split(
	const struct gpc_pool *pool, const struct gpc_block *piece, uint64_t rounded)
{
	bool is_odd = rounded % GPC_SEGMENT_ALIGN != 0;
	uint64_t rest = is_odd ? piece->size / REST_OF_PIECE : 0;

	return (is_odd && rounded < GPC_MEDIUM_MAX) || piece->size - rounded <= rest ||
	       piece->segment->range || !was_refused(pool) ||
	       gpc_pool_may_cut(pool, GPC_MEDIUM_SEGMENT, rounded);
}

bool gpc_pool_has_many_rests(const struct gpc_pool *pool)
{
	return gpc_counter_get(&pool->counters->cached_bytes) > room_of(pool) / REST_PART;
}

static uint64_t wasted_by(const struct gpc_pool *pool)
{
	return gpc_bytes_less(gpc_counter_get(&pool->counters->live_bytes),
		gpc_counter_get(&pool->counters->requested_bytes));
}

bool gpc_pool_has_waste_left(const struct gpc_pool *pool, uint64_t bytes)
{
	return wasted_by(pool) + bytes <= room_of(pool) / EXPORT_PART;
}

bool gpc_pool_may_waste(const struct gpc_pool *pool, uint64_t size, uint64_t rounded)
{
	return !was_refused(pool) && size <= rounded + rounded / 2 &&
	       wasted_by(pool) + size - rounded <= slack_of(pool) / WASTE_PART;
}
