/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HISTORY: the run in at most max_points points, however long it is.
 *
 * A point covers one interval in which something happened, and has the maximum of each value in it.  If the buffer is
 * full, the interval is doubled until at most half of the points are left, and the points are copied into the other
 * buffer.  Those that then lie in one interval become one point.
 */
#include <sys/stat.h>

#include "record/record.h"

/* A buffer of 1,024 points is full after a second at the earliest.  In a run of a day the interval doubles 17 times. */
#define FIRST_INTERVAL_NS UINT64_C(1000000)

/* Tools that remove old files go by mtime, which on tmpfs no store to a mapping updates. */
#define TOUCH_INTERVAL_NS (UINT64_C(60) * 1000000000)

static struct gpucache_point *buffer_of(struct gpucache_history_head *head, uint32_t buffer)
{
	struct gpucache_point *points = (void *)(head + 1);

	return points + (size_t)buffer * head->max_points;
}

static void raise_to(uint64_t *value, uint64_t other)
{
	if (other > *value)
		__atomic_store_n(value, other, __ATOMIC_RELAXED);
}

/* Pending bytes lie behind both buffers.  Their pages are never marked in PAGES: they may be all zeros. */
static uint64_t *pending_of(struct gpucache_history_head *head, uint32_t buffer)
{
	uint64_t *pending = (void *)buffer_of(head, 2);

	return pending + (size_t)buffer * head->max_points;
}

static void merge(struct gpucache_point *point, uint64_t *pending,
	const struct gpucache_point *other, uint64_t other_pending)
{
	raise_to(&point->requested_bytes, other->requested_bytes);
	raise_to(&point->live_bytes, other->live_bytes);
	raise_to(&point->reserved_bytes, other->reserved_bytes);
	raise_to(pending, other_pending);
}

/* The number of points that would be left with this interval. */
static uint32_t count_merged(
	const struct gpucache_point *points, uint32_t n, uint64_t start, uint64_t interval)
{
	uint32_t n_merged = 0;
	uint64_t last = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t number = (points[i].time_ns - start) / interval;

		n_merged += number != last;
		last = number;
	}
	return n_merged;
}

static void thin_locked(struct gpc_record *rec, struct gpucache_history_head *head, uint64_t start)
{
	uint32_t from = head->live_buffer;
	uint32_t to = 1 - from;
	const struct gpucache_point *old = buffer_of(head, from);
	const uint64_t *old_pending = pending_of(head, from);
	struct gpucache_point *points = buffer_of(head, to);
	uint64_t *pending = pending_of(head, to);
	uint64_t interval = head->interval_ns;
	uint32_t n = 0;

	do
		interval *= 2;
	while (count_merged(old, head->n_points[from], start, interval) > head->max_points / 2);
	for (uint32_t i = 0; i < head->n_points[from]; i++) {
		uint64_t time = start + (old[i].time_ns - start) / interval * interval;

		if (n > 0 && points[n - 1].time_ns == time) {
			merge(&points[n - 1], &pending[n - 1], &old[i], old_pending[i]);
		} else {
			points[n] = old[i];
			pending[n] = old_pending[i];
			points[n++].time_ns = time;
		}
	}
	gpc_record_mark(rec, points, n * sizeof *points);
	__atomic_store_n(&head->n_points[to], n, __ATOMIC_RELEASE);
	__atomic_store_n(&head->interval_ns, interval, __ATOMIC_RELEASE);
	__atomic_store_n(&head->live_buffer, to, __ATOMIC_RELEASE);
}

static void add_point_locked(struct gpc_record *rec, struct gpucache_history_head *head,
	const struct gpucache_point *point, uint64_t pending_bytes, uint64_t start)
{
	uint32_t live = head->live_buffer;
	uint32_t n = head->n_points[live];
	struct gpucache_point *points = buffer_of(head, live);
	uint64_t *pending = pending_of(head, live);
	uint64_t time = start + (point->time_ns - start) / head->interval_ns * head->interval_ns;

	/* Threads may report slightly out of order.  A point that is late is merged into the last one. */
	if (n > 0 && points[n - 1].time_ns >= time) {
		merge(&points[n - 1], &pending[n - 1], point, pending_bytes);
		return;
	}
	if (n == head->max_points) {
		thin_locked(rec, head, start);
		add_point_locked(rec, head, point, pending_bytes, start);
		return;
	}
	points[n] = *point;
	points[n].time_ns = time;
	pending[n] = pending_bytes;
	gpc_record_mark_page(rec, &points[n].time_ns);
	__atomic_store_n(&head->n_points[live], n + 1, __ATOMIC_RELEASE);
}

static void touch_locked(struct gpc_record *rec, uint64_t now_ns)
{
	if (rec->fd < 0 || now_ns - rec->touched_ns < TOUCH_INTERVAL_NS)
		return;
	rec->touched_ns = now_ns;
	if (gpc_io_is(rec->fd, &rec->file))
		(void)futimens(rec->fd, NULL);
}

void gpc_record_history(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t pending, uint64_t reserved)
{
	struct gpucache_point point = { .time_ns = now_ns,
		.requested_bytes = requested,
		.live_bytes = live,
		.reserved_bytes = reserved };
	const struct gpucache_region *region;
	struct gpucache_history_head *head;
	uint64_t start;

	if (!rec->base || device >= rec->n_devices)
		return;
	region = rec->regions[GPUCACHE_REGION_HISTORY];
	head = (void *)(rec->base + region->offset + (size_t)device * region->record_size);
	start = rec->header->start_monotonic_ns;
	if (point.time_ns < start)
		point.time_ns = start;
	gpc_lock_take(&rec->lock);
	if (head->device < 0) {
		__atomic_store_n(&head->interval_ns, FIRST_INTERVAL_NS, __ATOMIC_RELAXED);
		__atomic_store_n(&head->device, (int32_t)device, __ATOMIC_RELEASE);
	}
	add_point_locked(rec, head, &point, pending, start);
	touch_locked(rec, now_ns);
	gpc_lock_release(&rec->lock);
}
