/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "why/retries.h"

static struct gpucache_oom earlier;
static struct gpucache_oom now;
static struct gpc_facts facts;

static bool find_oom(void *self, uint64_t number, struct gpucache_oom *ret_oom)
{
	*ret_oom = earlier;
	return number == 1;
}

static struct gpucache_site asking;

static bool read_site(void *self, uint64_t i, struct gpucache_site *ret_site)
{
	*ret_site = asking;
	return true;
}

static const struct gpc_evidence evidence = {
	.find_oom = find_oom, .read_site = read_site, .n_sites = 1
};

/* Stack 7 has failed with 40 GiB, and now with 20; stack 8 has held 30 GiB all the time. */
static int set_up(void **state)
{
	asking = (struct gpucache_site){ .stack = 7, .total_blocks = 3, .first_ns = 500 };
	earlier = (struct gpucache_oom){ .number = 1,
		.time_ns = 1000,
		.stack = 7,
		.requested = 40 * GPC_GIB,
		.n_holders = 2,
		.holders = { { 7, 2, 40 * GPC_GIB }, { 8, 1, 30 * GPC_GIB } } };
	now = earlier;
	now.number = 2;
	now.requested = 20 * GPC_GIB;
	now.holders[0].bytes = 45 * GPC_GIB;
	now.balance.requested = 75 * GPC_GIB;
	facts = gpc_facts_unknown();
	return 0;
}

FIXTURE(set_up, NULL);

static void find(void)
{
	facts = gpc_facts_unknown();
	gpc_retries_find(&evidence, &now, &facts);
}

TEST(what_a_failed_attempt_left_is_found)
{
	find();
	assert_int_equal(facts.retried_site, 7);
	assert_int_equal(facts.retried_bytes, 45 * GPC_GIB);
}

TEST(another_thread_that_failed_retries_nothing)
{
	earlier.thread = 2;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}

/* A line took all there was, as for a pool, and another one asks for the first time. */
TEST(what_asks_for_the_first_time_is_no_attempt)
{
	now.stack = 9;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
	asking.stack = 9;
	find();
	assert_int_equal(facts.retried_bytes, 45 * GPC_GIB);
	asking.first_ns = 1001;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}

TEST(what_another_line_holds_is_no_attempt)
{
	earlier.stack = 9;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}

TEST(what_was_made_since_is_no_rest)
{
	earlier.holders[0].bytes = 10 * GPC_GIB;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}

/* A framework that gives back its cache and asks again, for as much. */
TEST(the_same_request_again_is_no_other_attempt)
{
	now.requested = earlier.requested;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}

TEST(a_part_that_does_not_count_is_left_out)
{
	now.balance.requested = 200 * GPC_GIB;
	find();
	assert_true(facts.retried_bytes == GPUCACHE_UNKNOWN);
}
