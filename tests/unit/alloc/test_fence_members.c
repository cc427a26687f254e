/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts join and leave fences; what remains when all have passed; in which fence a block is pending. */
#include "alloc/fence.h"
#include "sim/gpu/driver_sim.h"
#include "unit.h"

#define MS UINT64_C(1000000)

static struct gpc_sim *sim;
static struct gpc_sim_driver own;
static struct gpc_sim_driver peers[2];
static struct gpc_captures captures;
static struct gpc_fences fences;
static struct gpc_block blocks[4];

static int open_with(bool is_one_stream)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.virtual_clock = true;
	sim = gpc_sim_create(&config);
	if (!sim || gpc_sim_driver_init(&own, sim, 0, NULL))
		return -1;
	for (size_t i = 0; i < N_OF(peers); i++) {
		if (gpc_sim_driver_init(&peers[i], sim, 0, NULL))
			return -1;
	}
	gpc_captures_init(&captures);
	gpc_fences_init(&fences, &own.base, &captures, is_one_stream);
	for (size_t i = 0; i < N_OF(blocks); i++) {
		blocks[i] = (struct gpc_block){ .size = (uint64_t)512 << i,
			.state = GPC_BLOCK_PENDING };
		gpc_list_init(&blocks[i].link);
	}
	return 0;
}

static int start(void **state)
{
	return open_with(false);
}

static int start_with_one_stream(void **state)
{
	return open_with(true);
}

static bool has_given_back_all(const struct gpc_sim_driver *driver)
{
	return driver->counters.n_event_create == driver->counters.n_event_destroy;
}

static int stop(void **state)
{
	bool is_whole;

	gpc_fences_fini(&fences, true);
	is_whole = has_given_back_all(&own) && has_given_back_all(&peers[0]) &&
		   has_given_back_all(&peers[1]);
	for (size_t i = 0; i < N_OF(peers); i++)
		gpc_sim_driver_fini(&peers[i]);
	gpc_sim_driver_fini(&own);
	gpc_sim_destroy(sim);
	if (!is_whole)
		print_error("an event was made and never destroyed\n");
	return is_whole ? 0 : -1;
}

FIXTURE(start, stop);

static uint64_t n_passed(void)
{
	struct gpc_list passed;
	uint64_t n = 0;

	gpc_list_init(&passed);
	assert_int_equal(gpc_fences_take_passed(&fences, &passed), GPC_OK);
	gpc_list_each_safe (link, &passed) {
		gpc_list_remove(link);
		n++;
	}
	return n;
}

static void close_with(size_t block)
{
	gpc_fences_add(&fences, &blocks[block]);
	assert_true(gpc_fences_close(&fences));
}

static void add(struct gpc_sim_driver *driver)
{
	assert_int_equal(gpc_fences_add_member(&fences, &driver->base), GPC_OK);
}

static void launch_on(struct gpc_sim_driver *driver)
{
	assert_int_equal(gpc_sim_driver_launch(driver, 0, 5 * MS, 0, 0, -1), GPC_OK);
}

TEST(events_of_every_fence_are_destroyed_at_the_end)
{
	for (size_t i = 0; i < N_OF(blocks); i++)
		close_with(i);
	assert_int_equal(own.counters.n_event_create, N_OF(blocks));
	assert_int_equal(n_passed(), N_OF(blocks));
}

/* Three rounds of the ring, also with a member that leaves meanwhile. */
TEST(a_fence_that_is_used_again_begins_empty)
{
	const struct gpc_fence *open;

	add(&peers[0]);
	for (unsigned i = 0; i < 3 * GPC_MAX_FENCES; i++) {
		close_with(3);
		assert_int_equal(n_passed(), 1);
		open = gpc_fences_get_open(&fences);
		assert_int_equal(open->n_blocks, 0);
		assert_int_equal(open->bytes, 0);
		assert_int_equal(open->largest, 0);
		assert_false(open->has_event);
		gpc_list_init(&blocks[3].link);
	}
	gpc_fences_remove_member(&fences, &peers[0].base);
	assert_true(has_given_back_all(&peers[0]));
}

TEST(a_look_at_events_leaves_captures_free_to_begin)
{
	close_with(0);
	assert_int_equal(n_passed(), 1);
	assert_int_equal(pthread_rwlock_trywrlock(&captures.lock), 0); /* as one that begins */
	assert_int_equal(pthread_rwlock_unlock(&captures.lock), 0);
}

TEST(a_synchronisation_with_nothing_pending_closes_nothing)
{
	assert_int_equal(gpc_fences_begin_sync(&fences), 0);
	gpc_fences_add(&fences, &blocks[0]);
	assert_int_equal(gpc_fences_begin_sync(&fences), 1);
}

/* The first of two, so that the other takes its place. */
TEST(a_removed_member_is_no_longer_queried_and_the_others_are)
{
	add(&peers[0]);
	add(&peers[1]);
	launch_on(&peers[0]);
	launch_on(&peers[1]);
	close_with(0);
	close_with(1);
	gpc_fences_remove_member(&fences, &peers[0].base);
	assert_int_equal(fences.n_members, 2);
	assert_false(gpc_fences_has_member(&fences, &peers[0].base));
	assert_true(gpc_fences_has_member(&fences, &peers[1].base));
	assert_int_equal(peers[0].counters.n_event_destroy, 2);
	assert_int_equal(peers[1].counters.n_event_destroy, 0);
	assert_int_equal(n_passed(), 0); /* the other one is still at work */
	gpc_fences_remove_member(&fences, &peers[1].base);
	assert_int_equal(fences.n_members, 1);
	assert_int_equal(n_passed(), 2);
	/* What is freed from here on is nobody else's. */
	launch_on(&peers[0]);
	close_with(2);
	assert_int_equal(n_passed(), 1);
}

TEST(the_context_of_the_memory_and_a_foreign_one_cannot_be_removed)
{
	add(&peers[0]);
	gpc_fences_remove_member(&fences, &own.base);
	gpc_fences_remove_member(&fences, &peers[1].base);
	assert_int_equal(fences.n_members, 2);
	assert_true(gpc_fences_has_member(&fences, &own.base));
	assert_true(gpc_fences_has_member(&fences, &peers[0].base));
}

TEST(a_place_that_a_member_left_is_used_again)
{
	add(&peers[0]);
	close_with(0);
	gpc_fences_remove_member(&fences, &peers[0].base);
	assert_int_equal(n_passed(), 1);
	add(&peers[1]);
	launch_on(&peers[1]);
	close_with(1);
	assert_int_equal(n_passed(), 0);
	assert_int_equal(peers[1].counters.n_event_create, 1);
}

TEST(the_largest_pending_block_is_of_the_closed_and_of_the_open_fences)
{
	assert_int_equal(gpc_fences_largest(&fences), 0);
	gpc_fences_add(&fences, &blocks[1]);
	assert_int_equal(gpc_fences_largest(&fences), 1024);
	assert_true(gpc_fences_close(&fences));
	gpc_fences_add(&fences, &blocks[0]);
	assert_int_equal(gpc_fences_largest(&fences), 1024);
	gpc_fences_drop(&fences, &blocks[1]);
	assert_int_equal(fences.ring[1].bytes, 0);
	assert_int_equal(gpc_fences_largest(&fences), 512);
	gpc_fences_drop(&fences, &blocks[0]);
	assert_int_equal(gpc_fences_largest(&fences), 0);
}

TEST(what_joins_the_open_fence_for_a_new_member_stays_the_largest)
{
	close_with(2);
	gpc_fences_add(&fences, &blocks[0]);
	add(&peers[0]);
	assert_int_equal(gpc_fences_largest(&fences), 2048);
	assert_int_equal(gpc_fences_get_open(&fences)->n_blocks, 2);
}

TEST(a_peer_or_stream_needs_no_wait_where_there_never_was_one_stream_only)
{
	assert_false(gpc_fences_peer_comes(&fences));
	assert_int_equal(gpc_fences_stream_created(&fences, (gpc_stream)42), GPC_OK);
	assert_int_equal(own.counters.n_stream_wait, 0);
}

TEST_WITH(a_peer_ends_the_one_stream_rule_and_asks_for_a_wait, start_with_one_stream, stop)
{
	assert_true(gpc_fences_peer_comes(&fences));
	assert_false(gpc_fences_is_free_safe(&fences));
	assert_true(gpc_fences_peer_comes(&fences));
}

TEST_WITH(an_end_of_the_one_stream_rule_that_failed_is_still_due, start_with_one_stream, stop)
{
	assert_true(gpc_sim_fault_add(&sim->faults, "cuEventRecord", 1, 1, 999));
	gpc_fences_per_thread_stream_used(&fences);
	assert_true(fences.is_end_due);
	assert_true(gpc_fences_peer_comes(&fences));
}
