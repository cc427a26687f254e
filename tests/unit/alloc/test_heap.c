/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/heap.h"
#include "unit.h"

TEST(a_heap_without_an_observer_accepts_every_report)
{
	struct gpc_block block = { 0 };
	struct gpc_segment segment = { 0 };
	struct gpc_request request = { 0 };
	struct gpc_heap heap;

	assert_int_equal(gpc_heap_init(&heap, NULL), GPC_OK);
	heap.observer.block_changed(&block, 0);
	heap.observer.taken(&block, &request);
	heap.observer.freed(&block, &request, false);
	heap.observer.segment_added(&segment, &request);
	heap.observer.segment_removed(&segment);
	gpc_heap_fini(&heap);
}

TEST(an_address_finds_the_pool_of_its_segment)
{
	/* Never looked into: a pool is only named here. */
	struct gpc_pool *pool = (struct gpc_pool *)(uintptr_t)0x1000;
	struct gpc_segment segment = { .address = GPC_GIB, .size = 2 * GPC_MIB, .pool = pool };
	struct gpc_heap heap;

	assert_int_equal(gpc_heap_init(&heap, NULL), GPC_OK);
	assert_null(gpc_heap_find_pool(&heap, GPC_GIB));
	assert_int_equal(gpc_segment_map_insert(&heap.segment_map, &segment), GPC_OK);
	assert_ptr_equal(gpc_heap_find_pool(&heap, GPC_GIB + 77), pool);
	assert_null(gpc_heap_find_pool(&heap, GPC_GIB + 2 * GPC_MIB));
	gpc_heap_fini(&heap);
}

TEST(without_metadata_there_is_no_heap_and_nothing_is_left)
{
	size_t before = gpc_metamem_total();
	struct gpc_heap heap;

	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_heap_init(&heap, NULL), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_int_equal(gpc_metamem_total(), before);
}

TEST(a_hold_is_refused_while_a_capture_is_open)
{
	struct gpc_captures captures;

	gpc_captures_init(&captures);
	assert_true(gpc_captures_try_hold(&captures));
	gpc_captures_release(&captures);
	gpc_captures_begin(&captures);
	gpc_captures_begin(&captures);
	assert_true(gpc_captures_is_any_open(&captures));
	assert_false(gpc_captures_try_hold(&captures));
	gpc_captures_end(&captures);
	assert_false(gpc_captures_try_hold(&captures));
	gpc_captures_end(&captures);
	assert_true(gpc_captures_try_hold(&captures));
	gpc_captures_release(&captures);
}

TEST(an_end_without_a_begin_does_not_wrap_around)
{
	struct gpc_captures captures;

	gpc_captures_init(&captures);
	gpc_captures_end(&captures);
	assert_false(gpc_captures_is_any_open(&captures));
	gpc_captures_begin(&captures);
	assert_true(gpc_captures_is_any_open(&captures));
	gpc_captures_end(&captures);
}

static void *try_hold_too(void *arg)
{
	struct gpc_captures *captures = arg;

	if (!gpc_captures_try_hold(captures))
		return NULL;
	gpc_captures_release(captures);
	return captures;
}

/* A wait in one thread must not make another thread's wait fail: that would be an OOM for nothing. */
TEST(two_threads_hold_at_once)
{
	struct gpc_captures captures;
	void *held = NULL;
	pthread_t thread;

	gpc_captures_init(&captures);
	assert_true(gpc_captures_try_hold(&captures));
	assert_int_equal(pthread_create(&thread, NULL, try_hold_too, &captures), 0);
	assert_int_equal(pthread_join(thread, &held), 0);
	assert_non_null(held);
	gpc_captures_release(&captures);
}
