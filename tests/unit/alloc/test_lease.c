/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h: who may take a block without the pool's lock, when not, and what the books say meanwhile. */
#include <pthread.h>

#include "one_stage.h"

/* --- Threads, by their numbers. --------------------------------------------------------------- */

static gpc_devptr alloc_by(uint32_t thread, uint64_t size)
{
	struct gpc_request request = stage_request(&stage, size);
	gpc_devptr address = 0;

	request.thread = thread;
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &address), GPC_OK);
	return address;
}

static enum gpc_status try_free_by(uint32_t thread, gpc_devptr address)
{
	struct gpc_request request = stage_request(&stage, 0);

	request.thread = thread;
	return gpc_pool_free(&stage.pool, address, &request);
}

static void free_by(uint32_t thread, gpc_devptr address)
{
	assert_int_equal(try_free_by(thread, address), GPC_OK);
}

/* A block of this size that is on the lease of a thread, FREE. */
static gpc_devptr lend(uint32_t thread, uint64_t size)
{
	gpc_devptr address = alloc_by(thread, size);

	free_by(thread, address);
	assert_int_equal(stage.pool.leases[thread % GPC_N_LEASES].block->address, address);
	return address;
}

/* --- What the books say. ---------------------------------------------------------------------- */

static void expect_books(uint64_t requested, uint64_t live, uint64_t cached, uint64_t n_blocks)
{
	struct gpucache_counters counters = stage_counters(&stage);

	assert_int_equal(counters.requested_bytes, requested);
	assert_int_equal(counters.live_bytes, live);
	assert_int_equal(counters.cached_bytes, cached);
	assert_int_equal(counters.n_blocks, n_blocks);
}

static uint64_t n_long_ways(void)
{
	return stage.pool.counters->n_malloc + stage.pool.counters->n_free;
}

static void a_thread_takes_its_block_back_without_the_lock_of_the_pool(void **state)
{
	gpc_devptr block = lend(1, 4000);
	uint64_t before = n_long_ways();

	(void)state;
	gpc_lock_take(&stage.pool.lock);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(alloc_by(1, 4000), block);
		free_by(1, block);
	}
	gpc_lock_release(&stage.pool.lock);
	assert_int_equal(n_long_ways(), before);
	assert_int_equal(stage_counters(&stage).n_malloc, 101);
	assert_int_equal(stage_counters(&stage).n_hit, 100);
	assert_int_equal(stage_counters(&stage).n_free, 101);
}

static void counters_and_lanes_together_are_exact_at_every_step(void **state)
{
	gpc_devptr other = alloc_by(2, 512);
	gpc_devptr block = lend(1, 4000);

	(void)state;
	expect_books(512, 512, 2 * GPC_MIB - 512, 1);
	assert_int_equal(alloc_by(1, 4000), block);
	expect_books(4512, 4096 + 512, 2 * GPC_MIB - 4096 - 512, 2);
	free_by(1, block);
	expect_books(512, 512, 2 * GPC_MIB - 512, 1);
	stage_check(&stage); /* ends the lease */
	expect_books(512, 512, 2 * GPC_MIB - 512, 1);
	free_by(2, other);
	expect_books(0, 0, 2 * GPC_MIB, 0);
}

static void a_block_on_a_lease_does_not_raise_the_peak_of_others(void **state)
{
	gpc_devptr big;

	(void)state;
	(void)lend(1, 600 * 1024);
	big = alloc_by(2, 700 * 1024);
	assert_int_equal(stage_counters(&stage).peak_live_bytes, 700 * 1024);
	assert_int_equal(stage_counters(&stage).peak_requested_bytes, 700 * 1024);
	/* And what it was lent for is no way around the peak. */
	(void)alloc_by(1, 600 * 1024);
	assert_int_equal(stage_counters(&stage).peak_live_bytes, 1300 * 1024);
	free_by(2, big);
}

static void another_size_ends_the_lease_and_merges_the_block(void **state)
{
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(alloc_by(1, 512 * 1024), block);
	assert_null(stage.pool.leases[1].block);
}

static void the_same_block_for_another_request_takes_the_long_way(void **state)
{
	gpc_devptr block = lend(1, 4000);

	(void)state;
	assert_int_equal(alloc_by(1, 4001), block);
	assert_null(stage.pool.leases[1].block);
	expect_books(4001, 4096, 2 * GPC_MIB - 4096, 1);
	assert_int_equal(stage_counters(&stage).peak_requested_bytes, 4001);
}

static void another_thread_frees_a_block_on_lease(void **state)
{
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(alloc_by(1, 4096), block);
	free_by(2, block);
	assert_null(stage.pool.leases[1].block);
	assert_int_equal(stage.pool.leases[2].block->address, block);
	expect_books(0, 0, 2 * GPC_MIB, 0);
}

static void a_second_free_is_invalid_whoever_makes_it(void **state)
{
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(try_free_by(1, block), GPC_INVALID);
	(void)lend(1, 4096);
	assert_int_equal(try_free_by(2, block), GPC_INVALID);
	assert_int_equal(alloc_by(1, 4096), block);
	assert_int_equal(try_free_by(1, block + 512), GPC_INVALID);
	free_by(1, block);
}

/* Takes the number of a block that was merged away, as another pool may, the moment it is free. */
static struct gpc_block *taken_over;

static void take_over(void *self, const struct gpc_block *block, uint64_t now_ns)
{
	static uint32_t n_retired;
	uint32_t number;

	(void)self;
	(void)now_ns;
	if (block->state == GPC_BLOCK_UNUSED && ++n_retired == 2)
		taken_over = gpc_slab_get(&stage.heap.blocks, block->number);
	else if (taken_over && taken_over->state == GPC_BLOCK_UNUSED)
		*(struct gpc_block *)gpc_slab_take(&stage.heap.blocks, &number) =
			(struct gpc_block){ .number = number, .state = GPC_BLOCK_LIVE };
}

static void a_block_that_was_merged_away_is_not_looked_at_again(void **state)
{
	gpc_devptr left = alloc_by(1, 4096);
	gpc_devptr middle = alloc_by(2, 4096);
	gpc_devptr right = alloc_by(1, 4096);

	(void)state;
	free_by(1, left);
	free_by(1, right);
	free_by(1, alloc_by(1, 30 * GPC_MIB)); /* both are settled */
	free_by(2, middle);
	stage.heap.observer.block_changed = take_over;
	assert_int_equal(try_free_by(3, middle), GPC_INVALID);
	assert_non_null(taken_over);
	assert_int_equal(taken_over->state, GPC_BLOCK_LIVE); /* somebody else's */
	assert_null(stage.pool.leases[3].block);
	gpc_slab_give_back(&stage.heap.blocks, taken_over->number);
}

static void a_miss_finds_what_other_threads_have_on_lease(void **state)
{
	gpc_devptr block = lend(1, 30 * GPC_MIB);

	(void)state;
	assert_int_equal(alloc_by(2, 30 * GPC_MIB), block);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 1);
}

static void threads_that_share_a_lease_share_its_block(void **state)
{
	gpc_devptr block = lend(3, 4096);

	(void)state;
	assert_int_equal(alloc_by(3 + GPC_N_LEASES, 4096), block);
	free_by(3, block);
	expect_books(0, 0, 2 * GPC_MIB, 0);
}

static void a_lease_whose_lock_is_taken_is_not_waited_for(void **state)
{
	gpc_devptr block = lend(1, 4096);
	struct gpc_request request = stage_request(&stage, 4096);
	gpc_devptr address = 0;

	(void)state;
	atomic_store(&stage.pool.leases[1].lock.word, 1); /* as by another thread */
	assert_false(gpc_pool_alloc_leased(&stage.pool, &request, &address));
	assert_false(gpc_pool_free_leased(&stage.pool, block, &request));
	atomic_store(&stage.pool.leases[1].lock.word, 0);
	assert_true(gpc_pool_alloc_leased(&stage.pool, &request, &address));
	assert_true(gpc_pool_free_leased(&stage.pool, block, &request));
}

static void a_lease_ends_with_its_time_and_begins_anew(void **state)
{
	gpc_devptr block = lend(1, 4096);
	uint64_t before;

	(void)state;
	stage_pass_time(&stage, 11 * MS);
	before = n_long_ways();
	for (int i = 0; i < 10; i++) {
		assert_int_equal(alloc_by(1, 4096), block);
		free_by(1, block);
	}
	assert_int_equal(
		n_long_ways(), before + 1); /* the free on a new lease counts in the lane */
}

static void an_idle_segment_counts_from_the_free_and_not_from_the_end_of_the_lease(void **state)
{
	uint64_t now = stage.drv.base.ops->now_ns(&stage.drv.base);

	(void)state;
	(void)lend(1, 4096);
	stage_pass_time(&stage, 7 * MS);
	stage_check(&stage);
	assert_int_equal(
		gpc_list_entry(stage.pool.idle.next, struct gpc_segment, idle)->idle_since_ns, now);
}

static void idle_segments_are_in_order_whenever_their_leases_end(void **state)
{
	gpc_devptr first = alloc_by(2, 30 * GPC_MIB);
	gpc_devptr second = alloc_by(1, 40 * GPC_MIB);
	uint64_t now = stage.drv.base.ops->now_ns(&stage.drv.base);

	(void)state;
	free_by(2, first);
	stage_pass_time(&stage, 5 * MS);
	free_by(1, second);
	stage_check(&stage);
	assert_int_equal(
		gpc_list_entry(stage.pool.idle.next, struct gpc_segment, idle)->idle_since_ns, now);
	assert_int_equal(
		gpc_list_entry(stage.pool.idle.prev, struct gpc_segment, idle)->size, 40 * GPC_MIB);
}

static void decay_lets_leases_live(void **state)
{
	gpc_devptr block;
	uint64_t before;

	(void)state;
	stage.pool.params.decay_ns = 1 * MS;
	stage_pass_time(&stage, 2 * MS);
	block = lend(1, 4096);
	before = n_long_ways();
	for (int i = 0; i < 10; i++) {
		assert_int_equal(alloc_by(1, 4096), block);
		free_by(1, block);
	}
	assert_true(n_long_ways() <= before + 1); /* the first free looks at what is idle */
}

/* --- What ends the right to a free without a fence. ------------------------------------------- */

static void after_a_stream_was_made_a_free_waits_for_its_fence(void **state)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(alloc_by(1, 4096), block);
	assert_int_equal(
		gpc_fences_stream_created(&stage.pool.fences, stage_handle(stream)), GPC_OK);
	free_by(1, block);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	assert_null(stage.pool.leases[1].block);
	expect_books(0, 0, 2 * GPC_MIB - 4096, 0);
}

static struct gpc_driver_ops ops;
static enum gpc_status (*legacy_record)(struct gpc_driver *drv, gpc_event event);
static gpc_devptr freed_meanwhile;

/* Another thread frees while the event is recorded, which may not cover its work any more. */
static enum gpc_status record_meanwhile(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_request request = stage_request(&stage, 0);

	assert_false(gpc_pool_free_leased(&stage.pool, freed_meanwhile, &request));
	return legacy_record(drv, event);
}

static void while_the_rule_of_one_stream_ends_no_free_is_safe(void **state)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);

	(void)state;
	freed_meanwhile = lend(1, 4096);
	assert_int_equal(alloc_by(1, 4096), freed_meanwhile);
	ops = *stage.drv.base.ops;
	legacy_record = ops.legacy_record;
	ops.legacy_record = record_meanwhile;
	stage.drv.base.ops = &ops;
	assert_int_equal(
		gpc_fences_stream_created(&stage.pool.fences, stage_handle(stream)), GPC_OK);
	assert_false(stage.pool.fences.is_end_due);
	free_by(1, freed_meanwhile);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
}

static void what_was_free_before_is_taken_back_after(void **state)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(
		gpc_fences_stream_created(&stage.pool.fences, stage_handle(stream)), GPC_OK);
	assert_int_equal(alloc_by(1, 4096), block);
	free_by(1, block);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
}

static void an_exported_segment_has_nothing_on_lease(void **state)
{
	gpc_devptr base = 0;
	gpc_devptr block = lend(1, 4096);

	(void)state;
	assert_int_equal(alloc_by(1, 4096), block);
	assert_int_equal(gpc_pool_export(&stage.pool, block, &base), GPC_OK);
	assert_null(stage.pool.leases[1].block);
	free_by(1, block);
	assert_null(stage.pool.leases[1].block);
	assert_int_equal(stage_n_allocations(&stage), 0); /* it went back */
}

static void a_block_whose_use_others_declared_is_off_its_lease(void **state)
{
	gpc_devptr block = lend(1, 4096);
	struct gpc_span span;

	(void)state;
	assert_int_equal(alloc_by(1, 4096), block);
	assert_int_equal(gpc_pool_record_use(&stage.pool, block), GPC_OK);
	assert_null(stage.pool.leases[1].block);
	free_by(1, block);
	assert_int_equal(alloc_by(1, 4096), block);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, block + 8, GPC_VIEW_OWN, &span), GPC_OK);
	assert_null(stage.pool.leases[1].block);
	free_by(1, block);
}

static void a_lease_dies_with_the_pool(void **state)
{
	gpc_devptr block = lend(1, 4096);

	(void)state;
	gpc_pool_forget(&stage.pool);
	assert_null(stage.pool.leases[1].block);
	assert_int_equal(try_free_by(1, block), GPC_NOT_FOUND);
	expect_books(0, 0, 0, 0);
	assert_int_equal(stage.drv.base.ops->mem_free(&stage.drv.base, block), GPC_OK);
}

/* --- All at once. ----------------------------------------------------------------------------- */

#define N_THREADS 4
#define N_TURNS   20000

struct worker {
	pthread_t thread;
	uint32_t number;
	gpc_devptr *box; /* the others' too: what one leaves there another frees */
};

static gpc_devptr exchange(gpc_devptr *box, gpc_devptr address)
{
	return __atomic_exchange_n(box, address, __ATOMIC_ACQ_REL);
}

/* Mostly its own block; now and then another size, another's block, or a look at the whole. */
static void *work(void *arg)
{
	struct worker *self = arg;
	uint32_t random = self->number;

	for (int i = 0; i < N_TURNS; i++) {
		gpc_devptr address;

		random = random * 1664525 + 1013904223;
		address = alloc_by(self->number, random >> 28 == 0 ? 700 * 1024 : 4096);
		if (random >> 26 == 1)
			address = exchange(self->box, address);
		if (address)
			free_by(self->number, address);
		if (random >> 24 == 77)
			(void)gpc_pool_trim(&stage.pool, 1);
	}
	return NULL;
}

static void threads_with_leases_and_without_keep_the_books_in_order(void **state)
{
	struct worker workers[N_THREADS];
	gpc_devptr box = 0;

	(void)state;
	for (uint32_t i = 0; i < N_THREADS; i++) {
		/* The last two share a lease. */
		workers[i] = (struct worker){ .number = i < 3 ? i : 2 + GPC_N_LEASES, .box = &box };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	if (box)
		free_by(0, box);
	stage_check(&stage);
	assert_int_equal(stage_counters(&stage).n_malloc, N_THREADS * N_TURNS);
	assert_int_equal(stage_counters(&stage).n_free, N_THREADS * N_TURNS);
	assert_int_equal(stage_counters(&stage).live_bytes, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one_stream, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_takes_its_block_back_without_the_lock_of_the_pool),
		TEST(counters_and_lanes_together_are_exact_at_every_step),
		TEST(a_block_on_a_lease_does_not_raise_the_peak_of_others),
		TEST(another_size_ends_the_lease_and_merges_the_block),
		TEST(the_same_block_for_another_request_takes_the_long_way),
		TEST(another_thread_frees_a_block_on_lease),
		TEST(a_second_free_is_invalid_whoever_makes_it),
		TEST(a_block_that_was_merged_away_is_not_looked_at_again),
		TEST(a_miss_finds_what_other_threads_have_on_lease),
		TEST(threads_that_share_a_lease_share_its_block),
		TEST(a_lease_whose_lock_is_taken_is_not_waited_for),
		TEST(a_lease_ends_with_its_time_and_begins_anew),
		TEST(an_idle_segment_counts_from_the_free_and_not_from_the_end_of_the_lease),
		TEST(idle_segments_are_in_order_whenever_their_leases_end),
		TEST(decay_lets_leases_live),
		TEST(after_a_stream_was_made_a_free_waits_for_its_fence),
		TEST(while_the_rule_of_one_stream_ends_no_free_is_safe),
		TEST(what_was_free_before_is_taken_back_after),
		TEST(an_exported_segment_has_nothing_on_lease),
		TEST(a_block_whose_use_others_declared_is_off_its_lease),
		TEST(a_lease_dies_with_the_pool),
		TEST(threads_with_leases_and_without_keep_the_books_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
