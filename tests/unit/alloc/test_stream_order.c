/* SPDX-License-Identifier: Apache-2.0 */
/* A block freed by a stream is reused by that stream without a fence, by no other, and not if the order is unknown. */
#include "alloc/stream_order.h"

#include "base/metamem.h"
#include "stage.h"

#define SIZE (4 * GPC_MIB)

static struct stage stage;
static struct gpc_sim_stream *streams[2];

static void know(const struct gpc_sim_stream *stream)
{
	gpc_lock_take(&stage.pool.lock);
	gpc_stream_order_created(&stage.pool.order, stage_handle(stream));
	gpc_lock_release(&stage.pool.lock);
}

static void forget(gpc_stream stream)
{
	gpc_lock_take(&stage.pool.lock);
	gpc_stream_order_destroyed(&stage.pool.order, stream);
	gpc_lock_release(&stage.pool.lock);
}

static int start(void **state)
{
	struct gpc_pool_params params = stage_params();

	stage_open(&stage, &params);
	for (int i = 0; i < 2; i++) {
		streams[i] = stage_stream(&stage);
		know(streams[i]);
	}
	return 0;
}

static int stop(void **state)
{
	gpc_metamem_fail_at(0);
	stage_close(&stage);
	return 0;
}

FIXTURE(start, stop);

static gpc_devptr alloc_on(gpc_stream stream, uint64_t size)
{
	struct gpc_request request = stage_request(&stage, size);
	gpc_devptr address = 0;

	request.stream = stream;
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &address), GPC_OK);
	stage_check(&stage);
	return address;
}

static void free_on(gpc_stream stream, gpc_devptr address)
{
	struct gpc_request request = stage_request(&stage, 0);

	request.stream = stream;
	assert_int_equal(gpc_pool_free(&stage.pool, address, &request), GPC_OK);
	stage_check(&stage);
}

/* A block that stream 0 freed while its work runs. */
static gpc_devptr freed_busy(uint64_t size)
{
	gpc_devptr address = alloc_on(stage_handle(streams[0]), size);

	stage_launch(&stage, stage_handle(streams[0]), 5 * MS, address, size);
	free_on(stage_handle(streams[0]), address);
	return address;
}

TEST(memory_freed_on_a_stream_is_reused_on_it_without_a_driver_call)
{
	gpc_devptr address = freed_busy(SIZE);
	uint64_t n_calls = stage_n_fence_calls(&stage);

	assert_int_equal(stage.pool.counters->pending_bytes, SIZE);
	assert_int_equal(alloc_on(stage_handle(streams[0]), SIZE), address);
	assert_int_equal(stage_n_fence_calls(&stage), n_calls);
	assert_int_equal(stage.pool.counters->pending_bytes, 0);
	assert_int_equal(stage.pool.counters->n_hit, 1);
	stage_free(&stage, address);
}

TEST(another_stream_gets_it_after_the_fence_only)
{
	gpc_devptr address = freed_busy(SIZE);
	gpc_devptr other = alloc_on(stage_handle(streams[1]), SIZE);

	assert_int_not_equal(other, address);
	stage_pass_time(&stage, 10 * MS);
	assert_int_equal(gpc_pool_reap(&stage.pool) > 0, 1);
	stage_free(&stage, other);
	stage_pass_time(&stage, 10 * MS);
	(void)gpc_pool_reap(&stage.pool);
	assert_int_equal(alloc_on(stage_handle(streams[1]), SIZE), address);
	stage_free(&stage, address);
}

TEST(a_request_that_names_no_stream_gets_it_after_the_fence_only)
{
	gpc_devptr address = freed_busy(SIZE);
	gpc_devptr other = alloc_on(0, SIZE);

	assert_int_not_equal(other, address);
	stage_free(&stage, other);
}

TEST(a_free_that_names_no_stream_is_in_no_order)
{
	gpc_devptr address = alloc_on(stage_handle(streams[0]), SIZE);
	gpc_devptr other;

	stage_launch(&stage, stage_handle(streams[0]), 5 * MS, address, SIZE);
	stage_free(&stage, address);
	other = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(other, address);
	stage_free(&stage, other);
}

TEST(a_block_used_by_two_streams_waits_for_its_fence)
{
	gpc_devptr address = alloc_on(stage_handle(streams[0]), SIZE);
	gpc_devptr other;

	assert_int_equal(gpc_pool_record_use(&stage.pool, address), GPC_OK);
	stage_launch(&stage, stage_handle(streams[1]), 5 * MS, address, SIZE);
	free_on(stage_handle(streams[0]), address);
	other = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(other, address);
	free_on(stage_handle(streams[0]), other);
	/* The next owner is not bound by what the last one said. */
	assert_int_equal(alloc_on(stage_handle(streams[0]), SIZE), other);
	assert_int_equal(gpc_pool_record_use(&stage.pool, other + 512), GPC_INVALID);
	assert_int_equal(gpc_pool_record_use(&stage.pool, 512), GPC_NOT_FOUND);
	stage_free(&stage, other);
	assert_int_equal(gpc_pool_record_use(&stage.pool, other), GPC_INVALID);
	stage_pass_time(&stage, 10 * MS);
	(void)gpc_pool_reap(&stage.pool);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(alloc_on(stage_handle(streams[0]), SIZE), address);
		stage_launch(&stage, stage_handle(streams[0]), 5 * MS, address, SIZE);
		free_on(stage_handle(streams[0]), address);
	}
}

TEST(a_stream_created_unseen_keeps_no_order)
{
	const struct gpc_sim_stream *unseen = stage_stream(&stage);
	gpc_devptr address = alloc_on(stage_handle(unseen), SIZE);
	gpc_devptr other;

	stage_launch(&stage, stage_handle(unseen), 5 * MS, address, SIZE);
	free_on(stage_handle(unseen), address);
	other = alloc_on(stage_handle(unseen), SIZE);
	assert_int_not_equal(other, address);
	stage_free(&stage, other);
}

TEST(the_next_stream_with_the_handle_of_a_destroyed_one_inherits_nothing)
{
	gpc_devptr address = freed_busy(SIZE);
	gpc_devptr other;

	forget(stage_handle(streams[0]));
	stage_check(&stage);
	know(streams[0]);
	other = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(other, address);
	/* Also where the destruction was missed. */
	free_on(stage_handle(streams[0]), other);
	know(streams[0]);
	stage_check(&stage);
	assert_int_not_equal(alloc_on(stage_handle(streams[0]), SIZE), other);
}

TEST(no_order_is_kept_while_a_capture_is_open)
{
	gpc_devptr before = freed_busy(SIZE);
	gpc_devptr during;
	gpc_devptr after;

	gpc_captures_begin(&stage.heap.captures);
	during = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(during, before);
	free_on(stage_handle(streams[0]), during);
	gpc_captures_end(&stage.heap.captures);
	/* What was freed before is still in order; what was freed during it never was. */
	assert_int_equal(alloc_on(stage_handle(streams[0]), SIZE), before);
	after = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(after, during);
	stage_free(&stage, before);
	stage_free(&stage, after);
}

TEST(exported_memory_is_in_no_order)
{
	gpc_devptr freed = freed_busy(SIZE);
	gpc_devptr live = alloc_on(stage_handle(streams[1]), SIZE);
	gpc_devptr base = 0;

	assert_int_equal(gpc_pool_export(&stage.pool, freed, &base), GPC_OK);
	stage_check(&stage);
	assert_int_not_equal(alloc_on(stage_handle(streams[0]), SIZE), freed);
	free_on(stage_handle(streams[1]), live);
}

TEST(a_block_is_given_whole_or_not_at_all)
{
	gpc_devptr address = freed_busy(SIZE);
	gpc_devptr small = alloc_on(stage_handle(streams[0]), SIZE / 2);
	gpc_devptr fits;

	assert_int_not_equal(small, address);
	fits = alloc_on(stage_handle(streams[0]), SIZE - GPC_MIB / 2);
	assert_int_equal(fits, address);
	stage_free(&stage, small);
	stage_free(&stage, fits);
}

TEST(blocks_leave_the_order_when_their_fence_passes)
{
	gpc_devptr address = freed_busy(SIZE);

	stage_pass_time(&stage, 10 * MS);
	assert_int_equal(gpc_pool_reap(&stage.pool), SIZE);
	stage_check(&stage);
	assert_null(gpc_stream_order_find(&stage.pool.order, stage_handle(streams[0]), SIZE));
	assert_int_equal(alloc_on(stage_handle(streams[1]), SIZE), address);
	stage_free(&stage, address);
}

TEST(the_legacy_stream_is_known_from_the_start_and_for_ever)
{
	gpc_devptr address = alloc_on(GPC_ORDERED_LEGACY, SIZE);

	stage_launch(&stage, 0, 5 * MS, address, SIZE);
	forget(GPC_ORDERED_LEGACY);
	forget(0);
	free_on(GPC_ORDERED_LEGACY, address);
	assert_int_equal(alloc_on(GPC_ORDERED_LEGACY, SIZE), address);
	stage_free(&stage, address);
}

TEST(with_too_many_streams_the_last_ones_wait_for_fences)
{
	struct gpc_stream_order *order = &stage.pool.order;
	struct gpc_block block = { .size = SIZE, .state = GPC_BLOCK_PENDING };
	gpc_stream last = 0x1000 + GPC_MAX_ORDERED_STREAMS;

	for (gpc_stream stream = 0x1000; stream <= last; stream++)
		gpc_stream_order_created(order, stream);
	assert_int_equal(order->n_slots, GPC_MAX_ORDERED_STREAMS);
	gpc_stream_order_add(order, last, &block);
	assert_int_equal(block.order, 0);
	/* A place that is free again is taken. */
	gpc_stream_order_destroyed(order, 0x1000);
	gpc_stream_order_created(order, last);
	gpc_stream_order_add(order, last, &block);
	assert_int_not_equal(block.order, 0);
	assert_ptr_equal(gpc_stream_order_find(order, last, SIZE), &block);
	gpc_stream_order_remove(order, &block);
	assert_null(gpc_stream_order_find(order, last, SIZE));
}

TEST(without_metadata_a_block_waits_for_its_fence)
{
	gpc_devptr address = alloc_on(stage_handle(streams[0]), SIZE);
	gpc_devptr other;

	stage_launch(&stage, stage_handle(streams[0]), 5 * MS, address, SIZE);
	gpc_metamem_fail_at(1);
	free_on(stage_handle(streams[0]), address);
	gpc_metamem_fail_at(0);
	other = alloc_on(stage_handle(streams[0]), SIZE);
	assert_int_not_equal(other, address);
	stage_free(&stage, other);
}

TEST_WITH(a_pool_that_is_forgotten_forgets_the_orders, start, NULL)
{
	(void)freed_busy(SIZE);
	gpc_pool_forget(&stage.pool);
	assert_null(stage.pool.order.bins);
	assert_int_equal(stage.pool.order.n_slots, 1);
	/* The context is gone for the pool only: the device's memory goes with it. */
	gpc_sim_driver_fini(&stage.drv);
	gpc_heap_fini(&stage.heap);
	gpc_sim_destroy(stage.sim);
}
