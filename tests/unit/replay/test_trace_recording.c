/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of a few events as traces: blocks older than the events, other devices, and missing events. */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"
#include "tools/replay/trace.h"

#define MIB  (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)

static struct recording_builder builder;
static struct gpc_trace trace;

static int set_up(void **state)
{
	builder_init(&builder);
	trace = (struct gpc_trace){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	builder_fini(&builder);
	gpc_trace_fini(&trace);
	return 0;
}

FIXTURE(set_up, tear_down);

static uint64_t address_of(unsigned block)
{
	return BASE + (uint64_t)block * (MIB << 10);
}

static struct gpucache_event *add(enum gpucache_event_kind kind, unsigned block, uint64_t mib)
{
	struct gpucache_event *event = &builder.events[builder.n_events % BUILDER_EVENTS];

	builder_event(&builder, kind, mib * MIB, (double)builder.n_events);
	event->alloc_kind = GPUCACHE_KIND_DEVICE;
	event->address = address_of(block);
	return event;
}

static struct gpucache_block *holds(unsigned block, uint64_t mib)
{
	struct gpucache_block *held = builder_live(&builder, mib * MIB, mib * MIB, 1, 0);

	held->address = address_of(block);
	return held;
}

static void open_trace(int device)
{
	struct gpc_recording *recording = open_written(&builder);

	gpc_trace_from_recording(recording, device, false, &trace);
	gpc_recording_close(recording);
}

static void is_op(uint64_t i, enum gpc_trace_op_kind kind, uint32_t slot, uint64_t mib)
{
	assert_true(i < trace.n_ops);
	assert_int_equal(trace.ops[i].kind, kind);
	assert_int_equal(trace.ops[i].slot, slot);
	if (kind != GPC_TRACE_FREE)
		assert_int_equal(trace.ops[i].size, mib * MIB);
}

TEST(an_address_that_comes_again_is_another_slot)
{
	add(GPUCACHE_EVENT_MALLOC, 1, 4);
	add(GPUCACHE_EVENT_FREE, 1, 4);
	add(GPUCACHE_EVENT_MALLOC, 1, 6);
	add(GPUCACHE_EVENT_OOM, 0, 90);
	holds(1, 6);
	open_trace(0);
	assert_int_equal(trace.n_ops, 4);
	assert_int_equal(trace.n_slots, 2);
	is_op(0, GPC_TRACE_ALLOC, 0, 4);
	is_op(1, GPC_TRACE_FREE, 0, 0);
	is_op(2, GPC_TRACE_ALLOC, 1, 6);
	assert_int_equal(trace.ops[3].kind, GPC_TRACE_FAILURE);
	assert_int_equal(trace.ops[3].size, 90 * MIB);
	assert_int_equal(trace.n_failures, 1);
	assert_int_equal(trace.peak_live_bytes, 6 * MIB);
	assert_int_equal(trace.recorded.n_held_before, 0);
	assert_int_equal(trace.recorded.first_event, 1);
	assert_int_equal(trace.recorded.last_event, 4);
}

TEST(what_lived_before_the_first_event_comes_first)
{
	/* Block 1 lives until the end; of block 2 only the free is known. */
	add(GPUCACHE_EVENT_MALLOC, 3, 2);
	add(GPUCACHE_EVENT_FREE, 2, 8);
	holds(1, 4);
	holds(3, 2);
	open_trace(0);
	assert_int_equal(trace.recorded.n_held_before, 2);
	assert_int_equal(trace.recorded.held_before_bytes, 12 * MIB);
	assert_int_equal(trace.n_ops, 4);
	is_op(0, GPC_TRACE_ALLOC, 0, 4);
	is_op(1, GPC_TRACE_ALLOC, 1, 8);
	is_op(2, GPC_TRACE_ALLOC, 2, 2);
	is_op(3, GPC_TRACE_FREE, 1, 0);
	assert_int_equal(trace.n_unknown_frees, 0);
}

TEST(only_one_device_is_replayed)
{
	add(GPUCACHE_EVENT_MALLOC, 1, 4);
	add(GPUCACHE_EVENT_MALLOC, 2, 6)->device = 1;
	add(GPUCACHE_EVENT_MALLOC, 3, 8)->device = 1;
	holds(1, 4);
	holds(2, 6)->device = 1;
	holds(3, 8)->device = 1;
	open_trace(0);
	assert_int_equal(trace.n_ops, 1);
	assert_int_equal(trace.recorded.n_other_devices, 2);
	gpc_trace_fini(&trace);
	/* -1 chooses the device with the most events and blocks. */
	open_trace(-1);
	assert_int_equal(trace.recorded.device, 1);
	assert_int_equal(trace.n_ops, 2);
	assert_int_equal(trace.peak_live_bytes, 14 * MIB);
}

TEST(memory_of_other_kinds_is_held_all_the_time)
{
	add(GPUCACHE_EVENT_MALLOC, 5, 300)->alloc_kind = GPUCACHE_KIND_CONTEXT;
	add(GPUCACHE_EVENT_MALLOC, 1, 4);
	holds(1, 4);
	holds(5, 300)->kind = GPUCACHE_KIND_CONTEXT;
	open_trace(0);
	assert_int_equal(trace.n_ops, 1);
	assert_int_equal(trace.fixed_bytes, 300 * MIB);
	assert_int_equal(trace.peak_live_bytes, 4 * MIB);
}

TEST(what_the_ring_forgot_is_counted)
{
	for (unsigned i = 0; i < BUILDER_EVENTS + 4; i++)
		add(i % 2 ? GPUCACHE_EVENT_FREE : GPUCACHE_EVENT_MALLOC, i / 2, 2);
	/* The event of a writer that died in the middle of it. */
	builder.events[6].seq = 0;
	open_trace(0);
	assert_int_equal(trace.recorded.first_event, 5);
	assert_int_equal(trace.recorded.n_events, BUILDER_EVENTS + 4);
	assert_int_equal(trace.recorded.n_missing, 1);
}

TEST(a_torn_block_is_counted_and_left_out)
{
	add(GPUCACHE_EVENT_MALLOC, 1, 4);
	holds(1, 4);
	holds(2, 8)->seq = 3;
	open_trace(0);
	assert_int_equal(trace.recorded.n_torn, 1);
	assert_int_equal(trace.n_ops, 1);
}
