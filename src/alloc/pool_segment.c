/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: allocates them from the driver and returns them.
 *
 * No driver call that may block is made under the lock.  A segment to be returned is first removed from all
 * structures (detach), so that no request can be served from it meanwhile.  A new segment is complete before
 * it is inserted, and its first block is allocated under the same lock, so that the thread that grew the
 * pool gets it.  The segments of all pools of a device stay within its budget.
 */
#include "alloc/pool_internal.h"
#include "base/check.h"
#include "model/counters.h"

/*
 * Reserves `bytes` of the device's budget, or returns GPC_LIMIT.  Never exceeds the limit, even for a moment: a smaller
 * request of another thread would then fail.
 */
static enum gpc_status charge(struct gpc_budget *budget, uint64_t bytes)
{
	uint64_t limit = atomic_load(&budget->limit_bytes);
	uint64_t used = atomic_load(&budget->used_bytes);

	do {
		if (limit && bytes > gpc_bytes_less(limit, used))
			return GPC_LIMIT;
	} while (!atomic_compare_exchange_weak(&budget->used_bytes, &used, used + bytes));
	return GPC_OK;
}

/* Charges and obtains `size` bytes.  On GPC_OK they count as moving until the caller has made them a segment. */
static enum gpc_status ask_driver(
	struct gpc_pool *pool, bool wants_pages, uint64_t size, struct gpc_memory *ret_memory)
{
	enum gpc_status st;

	gpc_pool_begin_move(pool, size);
	st = atomic_load(&pool->is_closed) ? GPC_NOT_FOUND : charge(pool->budget, size);
	if (st) {
		if (st == GPC_LIMIT)
			gpc_pool_note_refused(pool, size);
		gpc_pool_end_move(pool, size);
		return st;
	}
	*ret_memory = (struct gpc_memory){ .size = size };
	st = wants_pages ? gpc_pool_map_pages(pool, size, ret_memory) : GPC_UNSUPPORTED;
	if (st == GPC_UNSUPPORTED)
		st = pool->drv->ops->mem_alloc(pool->drv, size, &ret_memory->address);
	if (st) {
		atomic_fetch_sub(&pool->budget->used_bytes, size);
		if (st == GPC_DEVICE_NO_MEMORY)
			gpc_pool_note_refused(pool, size);
		gpc_pool_end_move(pool, size);
	}
	return st;
}

uint64_t gpc_pool_segment_size(const struct gpc_pool *pool, uint64_t rounded)
{
	uint64_t size = gpc_size_segment(rounded, gpc_pool_has_many_rests(pool));
	uint64_t tight = gpc_size_tight_segment(rounded);

	if (size == tight || gpc_pool_gives_whole(pool, rounded) ||
		(rounded > GPC_SMALL_MAX && !gpc_pool_may_cut(pool, size, rounded) &&
			!gpc_pool_wants_pages(pool, rounded)))
		return tight;
	return size;
}

/* Memory for a segment that holds `rounded` bytes: of the usual size, else as small as possible. */
static enum gpc_status obtain(
	struct gpc_pool *pool, uint64_t rounded, bool is_exact, struct gpc_memory *ret_memory)
{
	uint64_t tight = gpc_size_tight_segment(rounded);
	uint64_t size = is_exact ? tight : gpc_pool_segment_size(pool, rounded);
	bool wants_pages = !is_exact && gpc_pool_wants_pages(pool, rounded);
	enum gpc_status st = ask_driver(pool, wants_pages, size, ret_memory);

	if ((st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT) && tight < size)
		st = ask_driver(pool, wants_pages, tight, ret_memory);
	return st;
}

bool gpc_pool_book_refused(struct gpc_pool *pool, uint64_t size)
{
	struct gpucache_counters *counters = pool->counters;
	bool is_held;

	gpc_pool_lock(pool);
	is_held = !pool->is_forgotten;
	if (is_held) {
		gpc_counter_add(&counters->kind_bytes[GPUCACHE_KIND_REFUSED], size);
		gpc_counter_add_peak(&counters->direct_bytes, &counters->peak_direct_bytes, size);
	}
	gpc_lock_release(&pool->lock);
	return is_held;
}

static void forget_refused_locked(struct gpc_pool *pool)
{
	struct gpucache_counters *counters = pool->counters;
	uint64_t *refused = &counters->kind_bytes[GPUCACHE_KIND_REFUSED];

	atomic_fetch_sub(&pool->budget->used_bytes, *refused);
	gpc_counter_sub(&counters->direct_bytes, *refused);
	gpc_counter_set(refused, 0);
}

/* How segments may go back to the driver now.  Pages always may: to unmap them waits for nothing. */
struct way {
	bool is_free; /* by mem_free: no work runs, or the caller may wait for it */
	bool is_beside; /* by mem_free_beside, which is preferred; never what another process may hold */
	bool is_captured; /* a capture is open: only by mem_free, which it survives */
};

/*
 * The question also tells which segments are settled.  Ask for each segment: another thread may submit work meanwhile,
 * for which a free would wait.
 */
static struct way find_way(struct gpc_pool *pool, bool may_wait)
{
	struct way way = { .is_free = may_wait };

	if (gpc_captures_is_any_open(&pool->heap->captures)) {
		gpc_pool_learn(pool);
		way.is_captured = true;
		return way;
	}
	if (!gpc_pool_ask_idle(pool))
		return (struct way){ .is_free = true };
	gpc_pool_learn(pool);
	gpc_lock_take(&pool->lock);
	/* A barrier that has not passed holds back what is freed in stream order. */
	way.is_beside = pool->fences.is_one_stream || pool->barrier.passed == pool->barrier.raised;
	gpc_lock_release(&pool->lock);
	way.is_beside = way.is_beside && !pool->drv->ops->prepare_beside(pool->drv);
	return way;
}

static enum gpc_status give_back(
	struct gpc_pool *pool, const struct gpc_memory *memory, struct way way)
{
	if (memory->range)
		return gpc_pool_unmap_pages(pool, memory);
	if (way.is_beside && !memory->is_exported &&
		!pool->drv->ops->mem_free_beside(pool->drv, memory->address))
		return GPC_OK;
	return pool->drv->ops->mem_free(pool->drv, memory->address);
}

/*
 * Accounts for what give_back() did.  May take the pool's lock, so the caller must not hold captures: their lock has a
 * higher rank.
 */
static void book_given_back(struct gpc_pool *pool, uint64_t size, enum gpc_status st)
{
	if (!st || !gpc_pool_book_refused(pool, size))
		atomic_fetch_sub(&pool->budget->used_bytes, size);
}

/* Returns detached memory to the driver, without the lock, and releases what begin_return_locked() held. */
static void end_return(struct gpc_pool *pool, const struct gpc_memory *returning, struct way way)
{
	enum gpc_status st = give_back(pool, returning, way);

	if (!way.is_captured)
		gpc_captures_release(&pool->heap->captures);
	book_given_back(pool, returning->size, st);
	gpc_pool_end_move(pool, returning->size);
}

struct gpc_segment *gpc_pool_new_segment(struct gpc_heap *heap, enum gpc_pool_kind kind)
{
	struct gpc_grain_map *grains = NULL;
	struct gpc_segment *segment;
	uint32_t grains_number = 0;
	uint32_t number = 0;

	if (kind == GPC_POOL_SMALL) {
		grains = gpc_slab_take(&heap->grain_maps, &grains_number);
		if (!grains)
			return NULL;
	}
	segment = gpc_slab_take(&heap->segments, &number);
	if (segment) {
		segment->number = number;
		segment->kind = (uint8_t)kind;
		segment->grains = grains;
		segment->grains_number = grains_number;
	} else if (grains) {
		gpc_slab_give_back(&heap->grain_maps, grains_number);
	}
	return segment;
}

static void end_segment(struct gpc_heap *heap, struct gpc_segment *segment)
{
	if (segment->grains)
		gpc_slab_give_back(&heap->grain_maps, segment->grains_number);
	gpc_slab_give_back(&heap->segments, segment->number);
}

/* Makes a segment of the memory: one FREE block, in no bin yet. */
static enum gpc_status attach_locked(struct gpc_pool *pool, const struct gpc_memory *memory,
	enum gpc_pool_kind kind, const struct gpc_request *request,
	struct gpc_segment **ret_segment)
{
	struct gpc_segment *segment = gpc_pool_new_segment(pool->heap, kind);
	enum gpc_status st;

	if (!segment)
		return GPC_NO_METADATA;
	segment->address = memory->address;
	segment->size = memory->size;
	segment->range = memory->range;
	segment->page_bytes = memory->page_bytes;
	segment->devices = memory->devices;
	__atomic_store_n(&segment->pool, pool, __ATOMIC_RELEASE);
	segment->mark = request->mark;
	segment->last_loose = 0;
	segment->is_exact = request->is_exact;
	segment->first = gpc_pool_new_block_locked(pool, segment, memory->address, memory->size);
	if (!segment->first) {
		st = GPC_NO_METADATA;
		goto undo_segment;
	}
	st = gpc_segment_map_insert(&pool->heap->segment_map, segment);
	if (st)
		goto undo_block;
	gpc_list_append(&pool->segments, &segment->link);
	gpc_counter_add(&pool->idle_segment_bytes, memory->size);
	*ret_segment = segment;
	return GPC_OK;
undo_block:
	gpc_pool_retire_block_locked(pool, segment->first);
undo_segment:
	end_segment(pool->heap, segment);
	return st;
}

static void count_new_segment(struct gpc_pool *pool, uint64_t size, uint64_t now_ns)
{
	struct gpucache_counters *counters = pool->counters;

	gpc_counter_add_peak(&counters->reserved_bytes, &counters->peak_reserved_bytes, size);
	gpc_counter_raise(&pool->recent.reserved_bytes, gpc_counter_get(&counters->reserved_bytes));
	gpc_counter_add(&counters->n_driver_malloc, 1);
	gpc_counter_add(&counters->n_segments, 1);
	gpc_counter_set(&counters->last_driver_malloc_ns, now_ns);
	atomic_store_explicit(&pool->is_short, false, memory_order_relaxed);
}

/* Returns the memory that could not become a segment, unless a capture forbids it.  True if none is left. */
static bool return_unplaced(struct gpc_pool *pool)
{
	struct gpc_memory memory = { 0 };
	struct way way = find_way(pool, true); /* not while captures are held */
	bool is_held;

	gpc_pool_lock(pool);
	is_held = pool->unplaced && gpc_pool_may_return_locked(pool);
	if (is_held) {
		memory = (struct gpc_memory){ .address = pool->unplaced,
			.size = pool->unplaced_size,
			.range = pool->unplaced_range };
		pool->unplaced = 0;
		gpc_pool_begin_move(pool, memory.size);
	}
	is_held |= pool->unplaced == 0;
	gpc_lock_release(&pool->lock);
	if (memory.address)
		end_return(pool, &memory, way);
	return is_held;
}

enum gpc_status gpc_pool_grow(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	uint64_t rounded = gpc_pool_rounded(pool, request);
	struct gpc_segment *segment = NULL;
	struct gpc_memory memory = { 0 };
	enum gpc_status st;
	bool is_second;
	bool is_dead;

	/* At most one allocation may wait to be returned. */
	if (pool->unplaced && !return_unplaced(pool))
		return GPC_NO_METADATA;
	gpc_pool_look_for_room(pool, 0);
	st = obtain(pool, rounded, request->is_exact, &memory);
	if (st == GPC_DEVICE_NO_MEMORY)
		gpc_pool_look_for_room(pool, gpc_size_tight_segment(rounded));
	gpc_pool_lock(pool);
	if (st) {
		if (st != GPC_NOT_FOUND)
			gpc_counter_add(&pool->counters->n_driver_failed, 1);
		gpc_lock_release(&pool->lock);
		return st;
	}
	st = pool->is_forgotten
		     ? GPC_NOT_FOUND
		     : attach_locked(pool, &memory,
			       gpc_pool_gives_whole(pool, rounded) ? GPC_POOL_LARGE
								   : gpc_size_pool(rounded),
			       request, &segment);
	if (!st) {
		count_new_segment(pool, memory.size, request->now_ns);
		pool->heap->observer.segment_added(segment, request);
		gpc_pool_make_free_locked(pool, segment->first, request->now_ns);
		/* A segment that was obtained to be shared is, even if another thread has changed what policy says. */
		*ret_address = gpc_pool_take_locked(pool, segment->first, rounded,
			memory.size > gpc_size_tight_segment(rounded) ||
				gpc_pool_should_cut(pool, segment->first, rounded),
			request);
	}
	/* The memory has died with the context, unless it consists of pages, and may be another owner's. */
	is_dead = pool->is_forgotten && !memory.range;
	is_second = st && (pool->unplaced || pool->is_forgotten);
	if (st && !is_second) {
		pool->unplaced = memory.address;
		pool->unplaced_size = memory.size;
		pool->unplaced_range = memory.range;
	}
	gpc_lock_release(&pool->lock);
	if (!st && memory.range && memory.devices != atomic_load(&pool->page_devices))
		gpc_pool_open_missing(pool);
	if (st == GPC_UNSUPPORTED)
		atomic_store_explicit(&pool->is_off_grid, true, memory_order_relaxed);
	if (is_dead)
		atomic_fetch_sub(&pool->budget->used_bytes, memory.size);
	else if (is_second) /* the memory of another thread waits already */
		book_given_back(pool, memory.size,
			give_back(pool, &memory, (struct way){ .is_free = true }));
	else if (st)
		(void)return_unplaced(pool);
	gpc_pool_end_move(pool, memory.size);
	return st;
}

/* Removes an idle segment from all structures; the caller then returns its memory to the driver. */
static void detach_locked(
	struct gpc_pool *pool, struct gpc_segment *segment, struct gpc_memory *ret_memory)
{
	struct gpucache_counters *counters = pool->counters;

	*ret_memory = (struct gpc_memory){
		.address = segment->address,
		.size = segment->size,
		.range = segment->range,
		.is_exported = segment->is_exported,
	};
	gpc_pool_begin_move(pool, segment->size);
	pool->heap->observer.segment_removed(segment);
	gpc_segment_map_remove(&pool->heap->segment_map, segment);
	gpc_pool_leave_bin_locked(pool, segment->first);
	gpc_pool_retire_block_locked(pool, segment->first);
	if (segment->is_exported)
		atomic_fetch_sub(&pool->n_leaving, 1);
	gpc_list_remove(&segment->idle);
	gpc_list_remove(&segment->link);
	gpc_counter_sub(&pool->idle_segment_bytes, segment->size);
	gpc_counter_sub(&counters->cached_bytes, segment->size);
	gpc_counter_sub(&counters->reserved_bytes, segment->size);
	gpc_counter_sub(&counters->n_segments, 1);
	gpc_counter_add(&counters->n_driver_free, 1);
	gpc_counter_add(&counters->n_gc_segments, 1);
	atomic_store_explicit(&pool->is_short, false, memory_order_relaxed);
	end_segment(pool->heap, segment);
}

/* False if work on the idle segment may still be running, for which the driver does not promise to wait. */
static bool may_return(const struct gpc_segment *segment, struct way way)
{
	if (!gpc_pool_is_settled(segment) || (way.is_captured && segment->range))
		return false;
	return segment->range || way.is_free || (way.is_beside && !segment->is_exported);
}

/*
 * Detaches an idle segment.  On true no capture can begin until end_return(), if none is open.  False if the segment
 * may not go back.
 */
static bool begin_return_locked(struct gpc_pool *pool, struct gpc_segment *segment, struct way way,
	struct gpc_memory *ret_returning)
{
	if (!may_return(segment, way) || (way.is_captured ? atomic_load(&pool->is_closed)
							  : !gpc_pool_may_return_locked(pool)))
		return false;
	detach_locked(pool, segment, ret_returning);
	return true;
}

/*
 * Chooses the smallest returnable idle segment of at least `wanted` bytes, else the one idle longest; NULL if there is
 * none.
 */
static struct gpc_segment *choose_idle(struct gpc_pool *pool, struct way way, uint64_t wanted)
{
	struct gpc_segment *oldest = NULL;
	struct gpc_segment *best = NULL;

	gpc_list_each (link, &pool->idle) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, idle);

		if (!may_return(segment, way))
			continue;
		oldest = oldest ? oldest : segment;
		if (wanted > GPC_SIZE_MAX) /* none is that large: all of them are wanted */
			break;
		if (segment->size >= wanted && (!best || segment->size < best->size))
			best = segment;
	}
	return best ? best : oldest;
}

/*
 * Detaches an idle segment; of one made of pages, no more pages than wanted.  Without an idle segment, detaches idle
 * pages of a segment in use.  False: there is nothing to detach, or a capture forbids it.
 */
static bool begin_any_return_locked(
	struct gpc_pool *pool, struct way way, uint64_t wanted, struct gpc_memory *ret_returning)
{
	struct gpc_segment *segment = choose_idle(pool, way, wanted);

	if (segment && (!segment->range || segment->is_exported ||
			       gpc_bytes_less(segment->size, segment->page_bytes) < wanted))
		return begin_return_locked(pool, segment, way, ret_returning);
	if (way.is_captured)
		return false;
	return gpc_pool_take_pages_locked(
		pool, segment ? segment->first : NULL, wanted, ret_returning);
}

/* The driver's free memory; 0: unknown. */
static uint64_t driver_free(struct gpc_pool *pool)
{
	uint64_t available = 0;
	uint64_t total;

	return pool->drv->ops->mem_info(pool->drv, &available, &total) ? 0 : available;
}

uint64_t gpc_pool_trim(struct gpc_pool *pool, uint64_t wanted, bool may_wait)
{
	uint64_t expected = 0; /* what the driver should have, once something went beside work */
	bool is_beside = false;
	uint64_t went = 0;

	while (went < wanted) {
		struct way way = find_way(pool, may_wait);
		struct gpc_memory returning;
		bool is_returning;

		if (way.is_beside && !is_beside)
			expected = driver_free(pool);
		is_beside |= way.is_beside;
		gpc_pool_lock(pool);
		is_returning = begin_any_return_locked(pool, way, wanted - went, &returning);
		gpc_lock_release(&pool->lock);
		if (!is_returning)
			break;
		end_return(pool, &returning, way);
		went += returning.size;
		expected += returning.size;
	}
	if (is_beside && went)
		atomic_fetch_add(&pool->late_bytes, gpc_bytes_less(expected, driver_free(pool)));
	return went;
}

#define DECAY_PART 16 /* decay() looks for old idle segments at most this often in decay_ns */

/*
 * Returns one idle segment to the driver: an exported one or, if before_ns > 0, one that has been idle since before
 * that time.  False: there is none, or it cannot be returned now.
 */
static bool return_one(struct gpc_pool *pool, bool may_wait, uint64_t before_ns)
{
	struct way way = find_way(pool, may_wait);
	struct gpc_memory returning;
	bool is_returning = false;

	gpc_pool_lock(pool);
	gpc_list_each (link, &pool->idle) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, idle);

		bool is_due = before_ns ? segment->idle_since_ns < before_ns : segment->is_exported;

		if (is_due)
			is_returning = begin_return_locked(pool, segment, way, &returning);
		/* The first one is idle longest: if it is not due by age, no other is. */
		if (is_due || before_ns)
			break;
	}
	gpc_lock_release(&pool->lock);
	if (is_returning)
		end_return(pool, &returning, way);
	return is_returning;
}

/* Returns the segments that were idle for decay_ns.  To look for them needs the lock, so it is rate-limited. */
static void decay(struct gpc_pool *pool, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&pool->next_decay_ns, memory_order_relaxed);

	if (pool->params.decay_ns == 0 || now_ns <= pool->params.decay_ns || now_ns < due_ns ||
		gpc_captures_is_any_open(&pool->heap->captures))
		return;
	atomic_store_explicit(&pool->next_decay_ns, now_ns + pool->params.decay_ns / DECAY_PART,
		memory_order_relaxed);
	while (return_one(pool, true, now_ns - pool->params.decay_ns))
		;
}

void gpc_pool_return_exported(struct gpc_pool *pool, bool may_wait)
{
	if (pool->unplaced)
		(void)return_unplaced(pool);
	while (atomic_load_explicit(&pool->n_leaving, memory_order_relaxed) > 0 &&
		!gpc_captures_is_any_open(&pool->heap->captures) && return_one(pool, may_wait, 0))
		;
}

void gpc_pool_return_due(struct gpc_pool *pool, uint64_t now_ns)
{
	gpc_pool_return_exported(pool, true);
	decay(pool, now_ns);
}

void gpc_pool_collect_garbage(struct gpc_pool *pool)
{
	const struct gpc_budget *budget = pool->budget;
	uint64_t limit = atomic_load(&budget->limit_bytes);
	uint64_t base = limit ? limit : budget->device_bytes;
	uint64_t allowed =
		(uint64_t)((unsigned __int128)base * pool->params.gc_threshold_ppm / 1000000);
	uint64_t used = atomic_load(&budget->used_bytes);

	if (base && used > allowed)
		(void)gpc_pool_trim(pool, used - allowed, true);
}

void gpc_pool_forget_segments_locked(struct gpc_pool *pool, struct gpc_list *ret_paged)
{
	const struct gpc_request request = { .now_ns = pool->drv->ops->now_ns(pool->drv) };

	forget_refused_locked(pool);
	gpc_list_each_safe (link, &pool->segments) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, link);
		struct gpc_block *next;

		pool->heap->observer.segment_removed(segment);
		gpc_segment_map_remove(&pool->heap->segment_map, segment);
		for (struct gpc_block *at = segment->first; at; at = next) {
			next = at->next;
			/* Live blocks died with the context. */
			if (at->state == GPC_BLOCK_LIVE)
				pool->heap->observer.freed(at, &request, false);
			gpc_pool_retire_block_locked(pool, at);
		}
		gpc_list_remove(link);
		if (segment->range) {
			gpc_pool_begin_move(pool, segment->size);
			gpc_list_append(ret_paged, link);
			continue;
		}
		atomic_fetch_sub(&pool->budget->used_bytes, segment->size);
		end_segment(pool->heap, segment);
	}
}

void gpc_pool_drop_pages(struct gpc_pool *pool, struct gpc_driver *const *members,
	uint32_t n_members, struct gpc_list *paged)
{
	bool is_over = gpc_captures_try_hold(&pool->heap->captures);

	/* The pool's own context, which has ended, is not among the members. */
	for (uint32_t m = 0; is_over && m < n_members; m++)
		(void)!members[m]->ops->context_sync(members[m]);
	gpc_list_each_safe (link, paged) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, link);
		const struct gpc_memory memory = {
			.address = segment->address, .size = segment->size, .range = segment->range
		};

		gpc_list_remove(link);
		if (is_over) {
			(void)!give_back(pool, &memory, (struct way){ .is_free = true });
			atomic_fetch_sub(&pool->budget->used_bytes, memory.size);
		}
		gpc_pool_end_move(pool, memory.size);
		end_segment(pool->heap, segment);
	}
	if (is_over)
		gpc_captures_release(&pool->heap->captures);
}
