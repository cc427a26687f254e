/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STREAMS: the streams that allocations and frees name.  A program has few, so the search is linear.  The search takes
 * no lock: a record is filled before stream_end moves past it.
 */
#include "base/clock.h"
#include "record/record.h"

/* The number of a stream that was not destroyed; 0 if it has no record. */
static uint32_t find(const struct gpc_record *rec, uint64_t handle)
{
	uint32_t end = atomic_load_explicit(&rec->stream_end, memory_order_acquire);

	for (uint32_t i = 1; i < end; i++)
		if (__atomic_load_n(&rec->streams[i].handle, __ATOMIC_RELAXED) == handle &&
			!__atomic_load_n(&rec->streams[i].end_ns, __ATOMIC_RELAXED))
			return i;
	return 0;
}

static uint32_t add_locked(struct gpc_record *rec, uint64_t handle)
{
	uint32_t number = atomic_load_explicit(&rec->stream_end, memory_order_relaxed);
	struct gpucache_stream *stream = &rec->streams[number];

	if (number == GPUCACHE_MAX_STREAMS)
		return GPUCACHE_STREAM_OTHER;
	__atomic_store_n(&stream->first_ns, gpc_clock_monotonic_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&stream->handle, handle, __ATOMIC_RELEASE);
	gpc_record_mark(rec, stream, sizeof *stream);
	atomic_store_explicit(&rec->stream_end, number + 1, memory_order_release);
	return number;
}

uint32_t gpc_record_stream(struct gpc_record *rec, uint64_t handle)
{
	uint32_t number;

	if (!rec->base)
		return 0;
	number = find(rec, handle);
	if (number)
		return number;
	gpc_lock_take(&rec->lock);
	number = find(rec, handle);
	if (!number)
		number = add_locked(rec, handle);
	gpc_lock_release(&rec->lock);
	return number;
}

void gpc_record_end_stream(struct gpc_record *rec, uint64_t handle)
{
	uint32_t number = rec->base ? find(rec, handle) : 0;

	if (number)
		__atomic_store_n(
			&rec->streams[number].end_ns, gpc_clock_monotonic_ns(), __ATOMIC_RELAXED);
}
