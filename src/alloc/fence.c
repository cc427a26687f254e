/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring always has at least one fence, the open one.  Two alternatives were rejected.  An event per free is a driver
 * call on every free, and up to a million events.  An event on the legacy stream alone does not capture the work of
 * non-blocking streams.
 */
#include "alloc/fence.h"

#include <string.h>

#include "base/check.h"

static struct gpc_fence *fence_at(struct gpc_fences *fences, uint64_t number)
{
	return &fences->ring[number % GPC_MAX_FENCES];
}

static void open_fence(struct gpc_fence *fence)
{
	gpc_list_init(&fence->blocks);
	fence->bytes = 0;
	fence->largest = 0;
	fence->n_blocks = 0;
	fence->has_event = false;
}

void gpc_fences_init(struct gpc_fences *fences, struct gpc_driver *drv,
	struct gpc_captures *captures, bool is_one_stream)
{
	memset(fences, 0, sizeof *fences);
	fences->captures = captures;
	fences->members[0] = drv;
	fences->n_members = 1;
	fences->oldest = 1;
	fences->open = 1;
	fences->can_record = true;
	fences->is_one_stream = is_one_stream;
	open_fence(fence_at(fences, 1));
}

static void destroy_events(struct gpc_fences *fences)
{
	for (uint32_t i = 0; i < GPC_MAX_FENCES; i++) {
		for (uint32_t m = 0; m < fences->n_members; m++) {
			struct gpc_driver *drv = fences->members[m];

			if (fences->ring[i].events[m])
				drv->ops->event_destroy(drv, fences->ring[i].events[m]);
		}
	}
	if (fences->one_stream_end)
		fences->members[0]->ops->event_destroy(fences->members[0], fences->one_stream_end);
}

void gpc_fences_fini(struct gpc_fences *fences, bool context_lives)
{
	if (context_lives)
		destroy_events(fences);
	gpc_fences_init(fences, fences->members[0], fences->captures, fences->is_one_stream);
}

bool gpc_fences_is_free_safe(const struct gpc_fences *fences)
{
	return fences->is_one_stream && fences->n_members == 1;
}

void gpc_fences_add(struct gpc_fences *fences, struct gpc_block *block)
{
	struct gpc_fence *fence = fence_at(fences, fences->open);

	block->fence = (uint8_t)(fences->open % GPC_MAX_FENCES);
	gpc_list_append(&fence->blocks, &block->link);
	fence->bytes += block->size;
	fence->n_blocks++;
	if (fence->largest < block->size)
		fence->largest = block->size;
	fences->pending_bytes += block->size;
}

void gpc_fences_drop(struct gpc_fences *fences, struct gpc_block *block)
{
	struct gpc_fence *fence = &fences->ring[block->fence];

	gpc_list_remove(&block->link);
	fence->bytes -= block->size;
	fence->n_blocks--;
	if (fence->n_blocks == 0)
		fence->largest = 0;
	fences->pending_bytes -= block->size;
}

const struct gpc_fence *gpc_fences_get_open(const struct gpc_fences *fences)
{
	return &fences->ring[fences->open % GPC_MAX_FENCES];
}

/* Closes the open fence and opens a new one.  False if the ring is full. */
static bool advance(struct gpc_fences *fences)
{
	if (fences->open + 1 - fences->oldest >= GPC_MAX_FENCES)
		return false;
	fences->open++;
	open_fence(fence_at(fences, fences->open));
	return true;
}

/* Records every member's event.  Events are created on first use of a ring slot and kept. */
static enum gpc_status record(struct gpc_fences *fences, struct gpc_fence *fence)
{
	enum gpc_status st = GPC_OK;

	for (uint32_t m = 0; m < fences->n_members && !st; m++) {
		struct gpc_driver *drv = fences->members[m];

		if (!fence->events[m])
			st = drv->ops->event_create(drv, &fence->events[m]);
		if (!st)
			st = drv->ops->fence_record(drv, fence->events[m]);
	}
	return st;
}

bool gpc_fences_close(struct gpc_fences *fences)
{
	struct gpc_fence *fence = fence_at(fences, fences->open);
	enum gpc_status st;

	if (!fences->can_record || fences->open + 1 - fences->oldest >= GPC_MAX_FENCES)
		return false;
	if (!gpc_captures_try_hold(fences->captures))
		return false;
	st = record(fences, fence);
	gpc_captures_release(fences->captures);
	if (st == GPC_UNSUPPORTED)
		fences->can_record = false;
	if (st)
		return false;
	fence->has_event = true;
	return advance(fences);
}

static enum gpc_status query(struct gpc_fences *fences, const struct gpc_fence *fence)
{
	enum gpc_status st = GPC_OK;

	for (uint32_t m = 0; m < fences->n_members && !st; m++)
		st = fences->members[m]->ops->event_query(fences->members[m], fence->events[m]);
	return st;
}

static void pass_oldest(struct gpc_fences *fences, struct gpc_list *ret_blocks)
{
	struct gpc_fence *fence = fence_at(fences, fences->oldest);

	fences->pending_bytes -= fence->bytes;
	gpc_list_append_all(ret_blocks, &fence->blocks);
	fences->oldest++;
}

void gpc_fences_pass(struct gpc_fences *fences, uint64_t number, struct gpc_list *ret_blocks)
{
	GPC_CHECK(number < fences->open);
	while (fences->oldest <= number && fences->oldest < fences->open)
		pass_oldest(fences, ret_blocks);
}

/* The number of the first closed fence, from `number` on, that has an event; if none has, that of the open one. */
static uint64_t next_event(const struct gpc_fences *fences, uint64_t number)
{
	while (number < fences->open && !fences->ring[number % GPC_MAX_FENCES].has_event)
		number++;
	return number;
}

enum gpc_status gpc_fences_take_passed(struct gpc_fences *fences, struct gpc_list *ret_blocks)
{
	uint64_t number = next_event(fences, fences->oldest);
	enum gpc_status st = GPC_OK;

	while (number < fences->open && !st) {
		st = query(fences, fence_at(fences, number));
		if (!st)
			gpc_fences_pass(fences, number, ret_blocks);
		number = next_event(fences, fences->oldest);
	}
	return st == GPC_DEVICE_NOT_READY ? GPC_OK : st;
}

uint64_t gpc_fences_begin_sync(struct gpc_fences *fences)
{
	/* If the ring is full, the open fence stays open, and this synchronisation passes only the closed fences. */
	if (fence_at(fences, fences->open)->n_blocks > 0)
		(void)advance(fences);
	return fences->open - 1;
}

/* Returns `number` and the event of that fence; 0 and no event for the open fence, or if there are peers. */
static uint64_t with_event(const struct gpc_fences *fences, uint64_t number, gpc_event *ret_event)
{
	if (number == fences->open || fences->n_members > 1)
		return 0;
	*ret_event = fences->ring[number % GPC_MAX_FENCES].events[0];
	return number;
}

uint64_t gpc_fences_find_useful(
	const struct gpc_fences *fences, uint64_t size, gpc_event *ret_event)
{
	uint64_t number = fences->oldest;

	while (number < fences->open && fences->ring[number % GPC_MAX_FENCES].largest < size)
		number++;
	/* If the fence that has such a block has no event, the event of a later fence covers it. */
	return with_event(fences, next_event(fences, number), ret_event);
}

uint64_t gpc_fences_find_newest(const struct gpc_fences *fences, gpc_event *ret_event)
{
	bool has_closed = fences->oldest < fences->open;

	return with_event(fences, next_event(fences, fences->open - has_closed), ret_event);
}

gpc_event gpc_fences_oldest_event(const struct gpc_fences *fences)
{
	uint64_t number = next_event(fences, fences->oldest);

	return number < fences->open ? fences->ring[number % GPC_MAX_FENCES].events[0] : 0;
}

uint64_t gpc_fences_largest(const struct gpc_fences *fences)
{
	uint64_t largest = 0;

	for (uint64_t number = fences->oldest; number <= fences->open; number++) {
		const struct gpc_fence *fence = &fences->ring[number % GPC_MAX_FENCES];

		if (fence->largest > largest)
			largest = fence->largest;
	}
	return largest;
}

/*
 * Ends the one-stream rule: from now on a freed block needs a barrier or a fence, and new streams wait for
 * one_stream_end.
 */
static enum gpc_status end_one_stream(struct gpc_fences *fences)
{
	struct gpc_driver *drv = fences->members[0];
	enum gpc_status st = GPC_OK;

	fences->is_one_stream = false;
	if (!fences->one_stream_end)
		st = drv->ops->event_create(drv, &fences->one_stream_end);
	if (!st)
		st = drv->ops->legacy_record(drv, fences->one_stream_end);
	fences->is_end_due = st != GPC_OK;
	return st;
}

enum gpc_status gpc_fences_stream_created(struct gpc_fences *fences, gpc_stream stream)
{
	struct gpc_driver *drv = fences->members[0];
	enum gpc_status st = GPC_OK;

	if (fences->is_one_stream || fences->is_end_due)
		st = end_one_stream(fences);
	if (st || !fences->one_stream_end)
		return st;
	return drv->ops->stream_wait(drv, stream, fences->one_stream_end);
}

void gpc_fences_per_thread_stream_used(struct gpc_fences *fences)
{
	if (fences->is_one_stream)
		(void)!end_one_stream(fences);
}

bool gpc_fences_peer_comes(struct gpc_fences *fences)
{
	gpc_fences_per_thread_stream_used(fences);
	/*
	 * The peer's streams wait for no event of ours, so the host must wait, however long ago the rule ended: work
	 * from before its end may still be running.
	 */
	return fences->one_stream_end || fences->is_end_due;
}

void gpc_fences_expect_peer(struct gpc_fences *fences)
{
	fences->is_peer_near = true;
}

bool gpc_fences_has_member(const struct gpc_fences *fences, const struct gpc_driver *drv)
{
	uint32_t m = 0;

	while (m < fences->n_members && fences->members[m] != drv)
		m++;
	return m < fences->n_members;
}

enum gpc_status gpc_fences_add_member(struct gpc_fences *fences, struct gpc_driver *drv)
{
	if (gpc_fences_has_member(fences, drv))
		return GPC_OK;
	gpc_fences_expect_peer(fences);
	/* Fences that are closed do not cover the new member, so their blocks move to the open fence. */
	while (fences->oldest < fences->open) {
		struct gpc_fence *fence = fence_at(fences, fences->oldest);
		struct gpc_fence *open = fence_at(fences, fences->open);

		gpc_list_each (link, &fence->blocks)
			gpc_list_entry(link, struct gpc_block, link)->fence =
				(uint8_t)(fences->open % GPC_MAX_FENCES);
		gpc_list_append_all(&open->blocks, &fence->blocks);
		open->bytes += fence->bytes;
		open->n_blocks += fence->n_blocks;
		open->largest = open->largest > fence->largest ? open->largest : fence->largest;
		fences->oldest++;
	}
	if (fences->n_members == GPC_MAX_MEMBERS) {
		fences->can_record = false;
		fences->has_more_contexts = true;
		return GPC_FULL;
	}
	fences->members[fences->n_members++] = drv;
	return GPC_OK;
}

void gpc_fences_remove_member(struct gpc_fences *fences, struct gpc_driver *drv)
{
	uint32_t last = fences->n_members - 1;
	uint32_t m = last;

	while (m > 0 && fences->members[m] != drv)
		m--;
	if (m == 0) /* the context of the memory is never removed */
		return;
	for (uint32_t i = 0; i < GPC_MAX_FENCES; i++) {
		gpc_event *events = fences->ring[i].events;

		if (events[m])
			drv->ops->event_destroy(drv, events[m]);
		events[m] = events[last];
		events[last] = 0;
	}
	fences->members[m] = fences->members[last];
	fences->n_members = last;
}
