/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the pool_*.c files only. */
#ifndef GPC_ALLOC_POOL_INTERNAL_H
#define GPC_ALLOC_POOL_INTERNAL_H

#include "alloc/pool.h"
#include "alloc/pool_hit.h"

/*
 * Each file calls only those before it: pool_room.c, pool_block.c, pool_barrier.c, pool_pages.c, pool_holes.c,
 * pool_segment.c, pool_exact.c, pool_wait.c, pool_short.c, pool_export.c, pool_check.c, pool.c; except that pool_pages.c calls
 * gpc_pool_book_refused, and pool_holes.c calls gpc_pool_new_segment, both of pool_segment.c.
 * _locked: the caller holds the pool's lock; the others are called without it.
 */

/* --- pool_room.c ------------------------------------------------------------------------------ */

/*
 * Queries the driver's free memory if the last answer is old, or if the driver has just refused `refused` bytes (0:
 * none) that should have fit.
 */
void gpc_pool_look_for_room(struct gpc_pool *pool, uint64_t refused);

/*
 * The driver, or the limit, has refused `size` bytes: from now on the policies below save room, and vmm:auto uses pages.
 * But more than all the room is refused however much of it is free: that says nothing.
 */
void gpc_pool_note_refused(struct gpc_pool *pool, uint64_t size);

/* True if policy allows a whole segment of this size to be cut for `rounded`. */
bool gpc_pool_may_cut(const struct gpc_pool *pool, uint64_t segment_size, uint64_t rounded);

/* True if policy allows this piece of a cut segment to be split for `rounded`; false while such pieces are to drain. */
bool gpc_pool_may_split(
	const struct gpc_pool *pool, const struct gpc_block *piece, uint64_t rounded);

/* True if so much is cached that new segments are to leave no remainder. */
bool gpc_pool_has_many_rests(const struct gpc_pool *pool);

/* True if policy allows a block of `size` bytes to serve `rounded` uncut. */
bool gpc_pool_may_waste(const struct gpc_pool *pool, uint64_t size, uint64_t rounded);

/*
 * True if a request may soon need what is cached here with `bytes` more, because the driver does not have much more
 * free; false if that is unknown.
 */
bool gpc_pool_may_be_short(const struct gpc_pool *pool, uint64_t bytes);

/* True if policy allows `bytes` more to be wasted by small blocks in own segments. */
bool gpc_pool_has_waste_left(const struct gpc_pool *pool, uint64_t bytes);

/* --- pool_block.c ----------------------------------------------------------------------------- */

/*
 * Makes a FREE block, gives it a number, and enters it in the address map (in a small segment: the grain map).
 * It is in no bin and has no neighbours.  NULL: no metadata.
 */
struct gpc_block *gpc_pool_new_block_locked(
	struct gpc_pool *pool, struct gpc_segment *segment, gpc_devptr address, uint64_t size);

/*
 * Retires a block, which must be in no bin and no fence: removes it from the address map or grain map, tells the
 * observer, and recycles its metadata.
 */
void gpc_pool_retire_block_locked(struct gpc_pool *pool, struct gpc_block *block);

/* The grain of a small segment at this address. */
static inline uint32_t gpc_pool_grain_of(const struct gpc_segment *segment, gpc_devptr address)
{
	return (uint32_t)((address - segment->address) / GPC_GRAIN);
}

/* The grain set of the FREE blocks of this block's size in its segment; NULL: they are all in the bin. */
static inline struct gpc_grain_set *gpc_pool_set_of(const struct gpc_block *block)
{
	struct gpc_grain_map *grains = block->segment->grains;

	return grains ? gpc_grain_map_set(grains, block->size) : NULL;
}

/* Insert a FREE block into the bin of its size, and remove it from there.  No-ops in an exported segment. */
void gpc_pool_enter_bin_locked(struct gpc_pool *pool, struct gpc_block *block);
void gpc_pool_leave_bin_locked(struct gpc_pool *pool, struct gpc_block *block);

/*
 * Makes a block FREE: coalesces it with its free neighbours, enters it into its bin, and counts it as cached.  The
 * block is LIVE, PENDING, or that of a new segment; the caller has taken it off its fence and counter.
 */
void gpc_pool_make_free_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns);

/* Makes a binned FREE block of at least `rounded` bytes LIVE; with is_cut its remainder stays free. */
gpc_devptr gpc_pool_take_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t rounded,
	bool is_cut, const struct gpc_request *request);

/*
 * True if a request of this size gets a segment of its own: the program exports memory, and a handle always opens at
 * the start of a segment; or it queries base addresses, and must get those that cudaMalloc returned.  Below 1 MiB most
 * of the segment is wasted, so policy must allow that waste.
 */
static inline bool gpc_pool_gives_whole(const struct gpc_pool *pool, uint64_t rounded)
{
	if (rounded < atomic_load_explicit(&pool->heap->whole_from, memory_order_relaxed))
		return false;
	return rounded >= GPC_SMALL_MAX ||
	       gpc_pool_has_waste_left(pool, gpc_size_tight_segment(rounded) - rounded);
}

/* True if the block is a whole segment of the large pool. */
static inline bool gpc_pool_is_whole(const struct gpc_block *block)
{
	return block->segment->kind == GPC_POOL_LARGE && !block->prev && !block->next;
}

/* The bins that a FREE block is in. */
static inline struct gpc_bins *gpc_pool_bins_of(
	struct gpc_pool *pool, const struct gpc_block *block)
{
	if (block->segment->is_exact)
		return &pool->exacts;
	return gpc_pool_is_whole(block) ? &pool->wholes : &pool->pieces[block->segment->kind];
}

/* True if this FREE block is cut to serve `rounded`. */
static inline bool gpc_pool_should_cut(
	const struct gpc_pool *pool, const struct gpc_block *block, uint64_t rounded)
{
	return !gpc_pool_gives_whole(pool, rounded) &&
	       gpc_size_should_split((enum gpc_pool_kind)block->segment->kind, block->size, rounded,
		       pool->params.max_split_size) &&
	       (!gpc_pool_is_whole(block) || gpc_pool_may_cut(pool, block->size, rounded) ||
		       block->segment->range); /* of pages: a piece pins only its own */
}

/* True if the segment is one FREE block. */
static inline bool gpc_pool_is_idle(const struct gpc_segment *segment)
{
	return !segment->first->next && segment->first->state == GPC_BLOCK_FREE;
}

/* Makes all blocks of passed fences FREE.  Returns their bytes. */
uint64_t gpc_pool_free_passed_locked(
	struct gpc_pool *pool, struct gpc_list *passed, uint64_t now_ns);

/* --- pool_barrier.c --------------------------------------------------------------------------- */

/*
 * If blocks are pending, raises a barrier, due or not, so that the device orders all later work behind theirs.  Returns
 * true if the blocks may now be FREE: search again (a capture may have kept them pending); false if none was pending,
 * or if no barrier can order them in this context.
 */
bool gpc_pool_order_pending(struct gpc_pool *pool);

/* Queries, without waiting, whether the work before the last free has completed; if so, raises barrier.passed. */
void gpc_pool_learn(struct gpc_pool *pool);

/* The work before all frees up to this number has completed. */
void gpc_pool_pass_locked(struct gpc_pool *pool, uint64_t number);

/*
 * GPC_OK: no work of the context runs, apart from what other threads submit meanwhile.  GPC_DEVICE_NOT_READY: some does.
 * Any other: the driver cannot tell, a capture forbids the question, or the context is ending.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_ask_idle(struct gpc_pool *pool);

/* True if all work submitted before the frees in this segment has completed: its idle memory may be returned. */
static inline bool gpc_pool_is_settled(const struct gpc_segment *segment)
{
	return segment->last_loose <= segment->pool->barrier.passed;
}

/* Ends the pool's duties and forgets its frees; destroys the events if the context still lives. */
void gpc_pool_end_barrier_locked(struct gpc_pool *pool, bool context_lives);

/* --- pool_pages.c ----------------------------------------------------------------------------- */

/* Memory that moves between a pool and the driver. */
struct gpc_memory {
	gpc_devptr address;
	uint64_t size;
	struct gpc_range *range; /* of its pages; NULL: it is one allocation */
	uint64_t page_bytes;
	uint64_t devices; /* as in struct gpc_segment */
	bool is_exported; /* the same */
};

/*
 * Call around every move of memory between a pool and the driver (budget.h): begin before the memory leaves a counter
 * or is charged; end after it is in a counter or not charged any more.
 */
static inline void gpc_pool_begin_move(struct gpc_pool *pool, uint64_t bytes)
{
	(void)atomic_fetch_add(&pool->budget->moving_bytes, bytes);
}

static inline void gpc_pool_end_move(struct gpc_pool *pool, uint64_t bytes)
{
	(void)atomic_fetch_sub(&pool->budget->moving_bytes, bytes);
	(void)atomic_fetch_add(&pool->budget->moved_bytes, bytes);
}

/* True if memory may be returned now; then no capture begins until the caller releases the hold. */
static inline bool gpc_pool_may_return_locked(struct gpc_pool *pool)
{
	return !atomic_load(&pool->is_closed) && gpc_captures_try_hold(&pool->heap->captures);
}

/* True if a new segment for a block of `rounded` bytes is to be made of pages. */
bool gpc_pool_wants_pages(const struct gpc_pool *pool, uint64_t rounded);

/*
 * Maps pages for `size` bytes, all or none.  GPC_DEVICE_NO_MEMORY: the device has less free.  GPC_UNSUPPORTED: they
 * cannot be mapped, but cuMemAlloc may still succeed.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_map_pages(
	struct gpc_pool *pool, uint64_t size, struct gpc_memory *ret_memory);

/* Gives all devices in page_devices access to every page of this pool. */
void gpc_pool_open_missing(struct gpc_pool *pool);

/* Returns pages to the driver.  The caller has already detached them from the pool. */
GPC_MUST_CHECK enum gpc_status gpc_pool_unmap_pages(
	struct gpc_pool *pool, const struct gpc_memory *memory);

/* --- pool_holes.c ----------------------------------------------------------------------------- */

/*
 * Detaches pages for `wanted` bytes, or fewer, from a segment that keeps its other pages: from `idle`, the only block
 * of a settled segment of more than `wanted` bytes, or, if NULL, from the best FREE block of a segment in use.  On true
 * the pages count as moving and captures are held: the caller returns the pages to the driver and releases the hold.
 * False: there are no such pages, work may still use them, a capture forbids it, or there is no metadata.
 */
bool gpc_pool_take_pages_locked(struct gpc_pool *pool, struct gpc_block *idle, uint64_t wanted,
	struct gpc_memory *ret_memory);

/* Bytes of idle pages in segments with live blocks. */
uint64_t gpc_pool_idle_pages(struct gpc_pool *pool);

/* --- pool_segment.c --------------------------------------------------------------------------- */

/* A new segment without memory or address, in no map or list; NULL: no metadata. */
struct gpc_segment *gpc_pool_new_segment(struct gpc_heap *heap, enum gpc_pool_kind kind);

/* The bytes of a new segment for a block of `rounded` bytes. */
uint64_t gpc_pool_segment_size(const struct gpc_pool *pool, uint64_t rounded);

/*
 * Accounts for memory that the driver refused to take back, and that stays allocated until the context ends.  False:
 * the context has ended.
 */
bool gpc_pool_book_refused(struct gpc_pool *pool, uint64_t size);

/* Returns idle exported segments to the driver, unless a capture forbids it, or, without may_wait, running work. */
void gpc_pool_return_exported(struct gpc_pool *pool, bool may_wait);

/* Calls gpc_pool_return_exported, and returns segments that were idle for longer than decay_ns. */
void gpc_pool_return_due(struct gpc_pool *pool, uint64_t now_ns);

/* Returns idle segments until at most gc_threshold_ppm of the limit, or else of the device, is reserved. */
void gpc_pool_collect_garbage(struct gpc_pool *pool);

/* Forgets all segments of a dead context, without driver calls; moves those of pages to *ret_paged. */
void gpc_pool_forget_segments_locked(struct gpc_pool *pool, struct gpc_list *ret_paged);

/*
 * Waits for the work of the other members, then returns the pages of a dead context, which do not die with it.  If a
 * capture forbids the wait, the pages stay mapped.
 */
void gpc_pool_drop_pages(struct gpc_pool *pool, struct gpc_driver *const *members,
	uint32_t n_members, struct gpc_list *paged);

/* --- pool_exact.c ----------------------------------------------------------------------------- */

/* An idle exact segment of exactly this size, or NULL. */
struct gpc_block *gpc_pool_find_exact_locked(struct gpc_pool *pool, uint64_t rounded);

/* As gpc_pool_grow, for an exact request: idle segments go back to the driver before it is refused. */
GPC_MUST_CHECK enum gpc_status gpc_pool_grow_exact(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* --- pool_wait.c ------------------------------------------------------------------------------ */

/*
 * Frees the blocks of passed fences; with `must_close`, closes the open fence first.  Fails if the
 * context is broken.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_reap_locked(
	struct gpc_pool *pool, bool must_close, uint64_t now_ns, uint64_t *ret_bytes);

/*
 * True if the pool withholds more than pending_limit from the program: pending bytes, or, after growing for a miss of
 * `rounded` bytes (0, as in cudaFree, counts as a small one), reserved bytes above the live peak.
 */
bool gpc_pool_holds_too_much(const struct gpc_pool *pool, uint64_t rounded);

/*
 * For cudaFree: waits for the context's own work before the oldest pending frees, until
 * gpc_pool_holds_too_much is false or nothing more can be freed.  Never waits for a peer.
 */
void gpc_pool_bound_pending(struct gpc_pool *pool);

#endif
