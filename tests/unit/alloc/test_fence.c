/* SPDX-License-Identifier: Apache-2.0 */
/* Fences alone, over the simulated driver; test_pool.c and test_pool_wait.c test them within a pool. */
#include "alloc/fence.h"
#include "sim/gpu/driver_sim.h"
#include "unit.h"

#define MS       UINT64_C(1000000)
#define N_BLOCKS 128
static struct gpc_sim *sim;
static struct gpc_sim_driver drv;
static struct gpc_sim_driver peers[GPC_MAX_MEMBERS];
static struct gpc_captures captures;
static struct gpc_fences fences;
static struct gpc_block blocks[N_BLOCKS];

static int open_with(int driver_version, bool is_one_stream)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.virtual_clock = true;
	config.driver_version = driver_version;
	sim = gpc_sim_create(&config);
	if (!sim || gpc_sim_driver_init(&drv, sim, 0, NULL))
		return -1;
	gpc_captures_init(&captures);
	gpc_fences_init(&fences, &drv.base, &captures, is_one_stream);
	for (size_t i = 0; i < N_BLOCKS; i++) {
		blocks[i] = (struct gpc_block){ .size = 512, .state = GPC_BLOCK_PENDING };
		gpc_list_init(&blocks[i].link);
	}
	return 0;
}

static int start(void **state)
{
	return open_with(13000, false);
}

static int start_with_one_stream(void **state)
{
	return open_with(13000, true);
}

static int start_with_an_old_driver(void **state)
{
	return open_with(12040, false);
}

static int stop(void **state)
{
	gpc_fences_fini(&fences, true);
	for (size_t i = 0; i < N_OF(peers); i++) {
		if (peers[i].context)
			gpc_sim_driver_fini(&peers[i]);
	}
	memset(peers, 0, sizeof peers);
	gpc_sim_driver_fini(&drv);
	gpc_sim_destroy(sim);
	return 0;
}

FIXTURE(start, stop);

#define TEST_ONE_STREAM(name) TEST_WITH(name, start_with_one_stream, stop)

static struct gpc_driver *peer(size_t i)
{
	assert_int_equal(gpc_sim_driver_init(&peers[i], sim, 0, NULL), GPC_OK);
	return &peers[i].base;
}

static void launch_on(struct gpc_sim_driver *driver, uint64_t duration_ns)
{
	assert_int_equal(gpc_sim_driver_launch(driver, 0, duration_ns, 0, 0, -1), GPC_OK);
}

static void pass_time(uint64_t ns)
{
	gpc_sim_clock_wait_until(&sim->clock, gpc_sim_clock_now(&sim->clock) + ns);
}

static uint64_t length_of(struct gpc_list *list)
{
	uint64_t n = 0;

	gpc_list_each_safe (link, list) {
		gpc_list_remove(link);
		n++;
	}
	return n;
}

/* How many blocks pass now. */
static uint64_t n_passed(void)
{
	struct gpc_list passed;

	gpc_list_init(&passed);
	assert_int_equal(gpc_fences_take_passed(&fences, &passed), GPC_OK);
	return length_of(&passed);
}

static uint64_t n_driver_calls(void)
{
	return drv.counters.n_event_create + drv.counters.n_fence_record +
	       drv.counters.n_event_query + drv.counters.n_sync + drv.counters.n_stream_wait;
}

TEST(a_free_makes_no_driver_call)
{
	for (size_t i = 0; i < N_BLOCKS; i++)
		gpc_fences_add(&fences, &blocks[i]);
	assert_int_equal(n_driver_calls(), 0);
	assert_int_equal(fences.pending_bytes, N_BLOCKS * 512);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, N_BLOCKS);
}

TEST(a_fence_passes_when_the_work_before_it_is_done_and_not_sooner)
{
	launch_on(&drv, 5 * MS);
	gpc_fences_add(&fences, &blocks[0]);
	gpc_fences_add(&fences, &blocks[1]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 0);
	pass_time(5 * MS - 1);
	assert_int_equal(n_passed(), 0);
	pass_time(1);
	assert_int_equal(n_passed(), 2);
	assert_int_equal(fences.pending_bytes, 0);
}

TEST(work_submitted_after_the_fence_does_not_hold_it_up)
{
	launch_on(&drv, 1 * MS);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	launch_on(&drv, 100 * MS);
	pass_time(1 * MS);
	assert_int_equal(n_passed(), 1);
}

TEST(an_open_fence_never_passes)
{
	gpc_fences_add(&fences, &blocks[0]);
	pass_time(1000 * MS);
	assert_int_equal(n_passed(), 0);
	assert_int_equal(drv.counters.n_event_query, 0);
}

TEST(only_the_oldest_event_is_queried)
{
	launch_on(&drv, 1 * MS);
	for (size_t i = 0; i < 10; i++) {
		gpc_fences_add(&fences, &blocks[i]);
		assert_true(gpc_fences_close(&fences));
	}
	assert_int_equal(n_passed(), 0);
	assert_int_equal(drv.counters.n_event_query, 1);
}

TEST(events_are_made_once_and_used_again)
{
	for (size_t round = 0; round < 5 * GPC_MAX_FENCES; round++) {
		gpc_fences_add(&fences, &blocks[0]);
		assert_true(gpc_fences_close(&fences));
		assert_int_equal(n_passed(), 1);
	}
	assert_int_equal(drv.counters.n_event_create, GPC_MAX_FENCES);
	assert_int_equal(fences.open, 1 + 5 * GPC_MAX_FENCES);
}

TEST(a_later_fence_covers_an_earlier_one_without_event)
{
	gpc_fences_add(&fences, &blocks[0]);
	(void)gpc_fences_begin_sync(&fences); /* closes without an event, and is never ended */
	gpc_fences_add(&fences, &blocks[1]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 2);
}

TEST(a_fence_without_event_never_passes_by_itself)
{
	gpc_fences_add(&fences, &blocks[0]);
	(void)gpc_fences_begin_sync(&fences);
	pass_time(1000 * MS);
	assert_int_equal(n_passed(), 0);
	assert_int_equal(drv.counters.n_event_query, 0);
}

TEST(a_record_that_failed_is_not_an_event)
{
	assert_true(gpc_sim_fault_add(&sim->faults, "cuCtxRecordEvent", 1, 1, 999));
	gpc_fences_add(&fences, &blocks[0]);
	assert_false(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 0);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 1);
}

TEST(an_event_that_cannot_be_made_leaves_the_fence_open)
{
	assert_true(gpc_sim_fault_add(&sim->faults, "cuEventCreate", 1, 1, 2));
	gpc_fences_add(&fences, &blocks[0]);
	assert_false(gpc_fences_close(&fences));
	assert_int_equal(drv.counters.n_fence_record, 0);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 1);
}

TEST(while_a_capture_is_open_nothing_is_recorded)
{
	gpc_captures_begin(&captures);
	gpc_fences_add(&fences, &blocks[0]);
	assert_false(gpc_fences_close(&fences));
	assert_int_equal(n_driver_calls(), 0);
	gpc_captures_end(&captures);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 1);
}

/* Threads make our calls in relaxed mode, in which a query invalidates no capture. */
TEST(while_a_capture_is_open_events_are_queried)
{
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	gpc_captures_begin(&captures);
	assert_int_equal(n_passed(), 1);
	gpc_captures_end(&captures);
}

TEST_WITH(a_driver_without_context_events_is_asked_once, start_with_an_old_driver, stop)
{
	gpc_fences_add(&fences, &blocks[0]);
	assert_false(gpc_fences_close(&fences));
	assert_false(fences.can_record);
	assert_int_equal(drv.counters.n_event_create, 1);
	assert_false(gpc_fences_close(&fences));
	assert_int_equal(n_driver_calls(), 1);
	assert_int_equal(n_passed(), 0);
}

TEST(when_the_ring_is_full_the_open_fence_grows)
{
	launch_on(&drv, 1 * MS);
	for (size_t i = 0; i < GPC_MAX_FENCES - 1; i++) {
		gpc_fences_add(&fences, &blocks[i]);
		assert_true(gpc_fences_close(&fences));
	}
	gpc_fences_add(&fences, &blocks[100]);
	assert_false(gpc_fences_close(&fences));
	gpc_fences_add(&fences, &blocks[101]);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 2);
	pass_time(1 * MS);
	assert_int_equal(n_passed(), GPC_MAX_FENCES - 1);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 2);
	assert_int_equal(fences.pending_bytes, 0);
}

TEST(a_synchronisation_passes_only_earlier_frees)
{
	struct gpc_list passed;
	uint64_t number;

	gpc_list_init(&passed);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	gpc_fences_add(&fences, &blocks[1]);
	number = gpc_fences_begin_sync(&fences);
	gpc_fences_add(&fences, &blocks[2]);
	gpc_fences_pass(&fences, number, &passed);
	assert_int_equal(length_of(&passed), 2);
	assert_int_equal(fences.pending_bytes, 512);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 1);
}

TEST(a_synchronisation_with_a_full_ring_leaves_the_open_fence_pending)
{
	struct gpc_list passed;
	uint64_t number;

	gpc_list_init(&passed);
	for (size_t i = 0; i < GPC_MAX_FENCES - 1; i++) {
		gpc_fences_add(&fences, &blocks[i]);
		(void)gpc_fences_begin_sync(&fences);
	}
	gpc_fences_add(&fences, &blocks[100]);
	number = gpc_fences_begin_sync(&fences);
	gpc_fences_add(&fences, &blocks[101]);
	gpc_fences_pass(&fences, number, &passed);
	assert_int_equal(length_of(&passed), GPC_MAX_FENCES - 1);
	assert_int_equal(fences.pending_bytes, 2 * 512);
}

TEST(a_synchronisation_does_not_pass_a_fence_closed_since)
{
	struct gpc_list passed;
	uint64_t number;

	gpc_list_init(&passed);
	gpc_fences_add(&fences, &blocks[0]);
	number = gpc_fences_begin_sync(&fences);
	launch_on(&drv, 5 * MS);
	gpc_fences_add(&fences, &blocks[1]);
	assert_true(gpc_fences_close(&fences));
	gpc_fences_pass(&fences, number, &passed);
	assert_int_equal(length_of(&passed), 1);
	gpc_fences_pass(&fences, number, &passed); /* a second thread's, begun at the same time */
	assert_int_equal(length_of(&passed), 0);
}

TEST(the_useful_fence_is_the_oldest_that_frees_enough_at_once)
{
	gpc_event event = 0;
	uint64_t number;

	blocks[1].size = 4096;
	blocks[2].size = 8192;
	for (size_t i = 0; i < 3; i++) {
		gpc_fences_add(&fences, &blocks[i]);
		assert_true(gpc_fences_close(&fences));
	}
	number = gpc_fences_find_useful(&fences, 1024, &event);
	assert_int_equal(number, fences.oldest + 1);
	assert_int_equal(event, fences.ring[number % GPC_MAX_FENCES].events[0]);
	assert_int_equal(gpc_fences_find_useful(&fences, 8192, &event), fences.oldest + 2);
	event = 0;
	assert_int_equal(gpc_fences_find_useful(&fences, 8193, &event), 0);
	assert_int_equal(event, 0);
	assert_int_equal(gpc_fences_largest(&fences), 8192);
}

TEST(a_useful_fence_without_event_is_waited_for_by_the_next_with_one)
{
	gpc_event event = 0;

	blocks[0].size = 4096;
	gpc_fences_add(&fences, &blocks[0]);
	(void)gpc_fences_begin_sync(&fences);
	assert_int_equal(gpc_fences_find_useful(&fences, 4096, &event), 0);
	gpc_fences_add(&fences, &blocks[1]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(gpc_fences_find_useful(&fences, 4096, &event), fences.oldest + 1);
	assert_true(event != 0);
}

TEST(a_block_can_be_taken_out_of_its_fence)
{
	gpc_fences_add(&fences, &blocks[0]);
	gpc_fences_add(&fences, &blocks[1]);
	assert_true(gpc_fences_close(&fences));
	gpc_fences_add(&fences, &blocks[2]);
	gpc_fences_drop(&fences, &blocks[0]);
	gpc_fences_drop(&fences, &blocks[2]);
	assert_int_equal(fences.pending_bytes, 512);
	assert_int_equal(n_passed(), 1);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 0);
}

TEST(a_block_can_be_taken_out_after_a_member_came)
{
	gpc_fences_add(&fences, &blocks[0]);
	(void)gpc_fences_begin_sync(&fences);
	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	gpc_fences_drop(&fences, &blocks[0]);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 0);
}

TEST(a_broken_context_is_reported_and_passes_nothing)
{
	struct gpc_list passed;

	gpc_list_init(&passed);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	gpc_sim_context_break(drv.context, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_fences_take_passed(&fences, &passed),
		gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS));
	assert_int_equal(length_of(&passed), 0);
	assert_int_equal(fences.pending_bytes, 512);
}

TEST_ONE_STREAM(with_one_stream_a_free_is_safe_at_once)
{
	assert_true(gpc_fences_is_free_safe(&fences));
}

TEST_ONE_STREAM(the_second_stream_waits_on_the_device_for_the_legacy_one)
{
	struct gpc_sim_stream *stream = NULL;
	uint64_t end;

	launch_on(&drv, 5 * MS);
	end = atomic_load(&drv.context->tail_ns);
	assert_int_equal(gpc_sim_stream_create(drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	assert_int_equal(gpc_fences_stream_created(&fences, (gpc_stream)(uintptr_t)stream), GPC_OK);
	assert_false(gpc_fences_is_free_safe(&fences));
	assert_true(atomic_load(&stream->tail_ns) >= end);
	assert_int_equal(drv.counters.n_sync, 0); /* the host waited for nothing */
}

TEST_ONE_STREAM(every_later_stream_waits_for_the_same_event)
{
	struct gpc_sim_stream *stream = NULL;

	launch_on(&drv, 5 * MS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			gpc_sim_stream_create(drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
			CUDA_SUCCESS);
		assert_int_equal(
			gpc_fences_stream_created(&fences, (gpc_stream)(uintptr_t)stream), GPC_OK);
	}
	assert_int_equal(drv.counters.n_fence_record, 1);
	assert_int_equal(drv.counters.n_stream_wait, 3);
	assert_true(atomic_load(&stream->tail_ns) >= 5 * MS);
}

TEST_ONE_STREAM(the_one_stream_rule_does_not_come_back)
{
	struct gpc_sim_stream *stream = NULL;

	assert_int_equal(gpc_sim_stream_create(drv.context, 0, 0, &stream), CUDA_SUCCESS);
	assert_int_equal(gpc_fences_stream_created(&fences, (gpc_stream)(uintptr_t)stream), GPC_OK);
	gpc_sim_stream_destroy(stream);
	assert_false(gpc_fences_is_free_safe(&fences));
}

TEST_ONE_STREAM(if_the_legacy_stream_cannot_be_recorded_the_caller_gets_an_error)
{
	struct gpc_sim_stream *stream = NULL;

	assert_int_equal(gpc_sim_stream_create(drv.context, 0, 0, &stream), CUDA_SUCCESS);
	assert_true(gpc_sim_fault_add(&sim->faults, "cuEventCreate", 1, 1, 2));
	assert_int_equal(gpc_fences_stream_created(&fences, (gpc_stream)(uintptr_t)stream),
		GPC_DEVICE_NO_MEMORY);
	/* The caller waits on the host then; the rule has ended all the same. */
	assert_false(gpc_fences_is_free_safe(&fences));
	assert_int_equal(gpc_fences_stream_created(&fences, (gpc_stream)(uintptr_t)stream), GPC_OK);
}

TEST_ONE_STREAM(the_first_per_thread_stream_ends_the_one_stream_rule_once)
{
	gpc_fences_per_thread_stream_used(&fences);
	assert_false(gpc_fences_is_free_safe(&fences));
	gpc_fences_per_thread_stream_used(&fences);
}

TEST_ONE_STREAM(a_peer_ends_the_one_stream_rule)
{
	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	assert_false(gpc_fences_is_free_safe(&fences));
}

TEST(a_fence_passes_when_every_member_has_done_its_work)
{
	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	assert_int_equal(
		gpc_fences_add_member(&fences, &peers[0].base), GPC_OK); /* once is enough */
	assert_int_equal(fences.n_members, 2);
	launch_on(&peers[0], 5 * MS);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 0);
	pass_time(5 * MS);
	assert_int_equal(n_passed(), 1);
}

TEST(a_new_member_also_covers_earlier_frees)
{
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	gpc_fences_add(&fences, &blocks[1]);
	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	launch_on(&peers[0], 5 * MS);
	assert_int_equal(n_passed(), 0);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 2);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 0);
	pass_time(5 * MS);
	assert_int_equal(n_passed(), 2);
	assert_int_equal(fences.pending_bytes, 0);
}

TEST(one_members_failed_record_means_no_event_at_all)
{
	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	assert_true(gpc_sim_fault_add(&sim->faults, "cuCtxRecordEvent", 2, 1, 999));
	gpc_fences_add(&fences, &blocks[0]);
	assert_false(gpc_fences_close(&fences));
	assert_false(gpc_fences_get_open(&fences)->has_event);
	assert_int_equal(n_passed(), 0);
}

TEST(with_peers_no_single_event_can_be_waited_for)
{
	gpc_event event = 0;

	assert_int_equal(gpc_fences_add_member(&fences, peer(0)), GPC_OK);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(gpc_fences_find_useful(&fences, 512, &event), 0);
	assert_int_equal(event, 0);
}

TEST(one_member_too_many_ends_passing_by_events)
{
	for (size_t i = 0; i < GPC_MAX_MEMBERS - 1; i++)
		assert_int_equal(gpc_fences_add_member(&fences, peer(i)), GPC_OK);
	gpc_fences_add(&fences, &blocks[0]);
	assert_true(gpc_fences_close(&fences));
	assert_int_equal(gpc_fences_add_member(&fences, peer(GPC_MAX_MEMBERS - 1)), GPC_FULL);
	assert_true(fences.has_more_contexts);
	assert_false(gpc_fences_close(&fences));
	assert_int_equal(n_passed(), 0);
	assert_int_equal(fences.pending_bytes, 512);
}
