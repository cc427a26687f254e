/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/metamem.h"
#include "stats/growth.h"

#define N_SITES 8

static struct gpc_growth growth;
static struct gpucache_site sites[N_SITES];

static int set_up(void **state)
{
	(void)state;
	memset(sites, 0, sizeof sites);
	for (uint32_t i = 1; i < N_SITES; i++)
		sites[i].stack = 10 + i;
	return gpc_growth_init(&growth, 0, N_SITES) != GPC_OK;
}

static int tear_down(void **state)
{
	(void)state;
	gpc_growth_fini(&growth);
	return gpc_metamem_total() != 0;
}

/* `n` allocations; site 1 gets one more byte at each, site 2 comes and goes, site 3 holds still. */
static void run(uint64_t first, uint64_t n)
{
	sites[3].live_bytes = 1000000;
	for (uint64_t i = first; i < first + n; i++) {
		sites[1].live_bytes = i;
		sites[2].live_bytes = i % 2 ? 100000 : 0;
		gpc_growth_note(&growth, i, sites, N_SITES);
	}
}

static void a_site_that_rises_in_every_window_is_found(void **state)
{
	struct gpc_growing found;

	(void)state;
	run(1, 400);
	found = gpc_growth_find(&growth, sites, N_SITES);
	assert_int_equal(found.stack, 11);
	assert_int_equal(found.n_windows, 8);
	assert_int_equal(found.n_up, 8);
	assert_true(found.bytes > 200 && found.bytes < 400);
}

static void the_windows_span_the_whole_of_a_long_run(void **state)
{
	struct gpc_growing found;

	(void)state;
	run(1, 100000);
	found = gpc_growth_find(&growth, sites, N_SITES);
	assert_int_equal(found.stack, 11);
	assert_true(found.n_up >= 7);
	/* Eight windows are at least a quarter of it: rows are thinned when sixteen are full. */
	assert_true(found.bytes > 25000);
}

static void what_holds_still_is_not_growth(void **state)
{
	(void)state;
	sites[3].live_bytes = 1000000;
	for (uint64_t i = 1; i < 1000; i++)
		gpc_growth_note(&growth, i, sites, N_SITES);
	assert_int_equal(gpc_growth_find(&growth, sites, N_SITES).stack, 0);
}

static void what_a_site_gained_is_asked_for_by_its_stack(void **state)
{
	(void)state;
	assert_int_equal(gpc_growth_of(&growth, sites, N_SITES, 11), 0);
	run(1, 100000);
	assert_int_equal(gpc_growth_of(&growth, sites, N_SITES, 11),
		gpc_growth_find(&growth, sites, N_SITES).bytes);
	assert_int_equal(gpc_growth_of(&growth, sites, N_SITES, 13), 0);
	assert_int_equal(gpc_growth_of(&growth, sites, N_SITES, 0), 0);
	assert_int_equal(gpc_growth_of(&growth, sites, N_SITES, 99), 0);
}

static void fewer_than_eight_windows_say_nothing(void **state)
{
	(void)state;
	run(1, 200);
	assert_int_equal(gpc_growth_find(&growth, sites, N_SITES).stack, 0);
}

static void a_site_half_way_through_a_removal_counts_as_empty(void **state)
{
	struct gpc_growing found;

	(void)state;
	run(1, 400);
	sites[4].live_bytes = (uint64_t)-5;
	found = gpc_growth_find(&growth, sites, N_SITES);
	assert_int_equal(found.stack, 11);
}

static void what_grows_on_another_device_is_not_seen(void **state)
{
	struct gpc_growing found;

	(void)state;
	sites[1].device = 1;
	sites[4].device = 1;
	for (uint64_t i = 1; i < 400; i++) {
		sites[5].live_bytes = i;
		sites[1].live_bytes = sites[4].live_bytes = 1000 * i;
		gpc_growth_note(&growth, i, sites, N_SITES);
	}
	found = gpc_growth_find(&growth, sites, N_SITES);
	assert_int_equal(found.stack, 15);
	assert_true(found.bytes < 400);
}

static void without_metadata_nothing_is_noted(void **state)
{
	struct gpc_growth none;

	(void)state;
	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_growth_init(&none, 0, N_SITES), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	gpc_growth_note(&none, 1u << 30, sites, N_SITES);
	assert_int_equal(gpc_growth_find(&none, sites, N_SITES).stack, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_site_that_rises_in_every_window_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_windows_span_the_whole_of_a_long_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_holds_still_is_not_growth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			fewer_than_eight_windows_say_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_a_site_gained_is_asked_for_by_its_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_site_half_way_through_a_removal_counts_as_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_grows_on_another_device_is_not_seen, set_up, tear_down),
		cmocka_unit_test(without_metadata_nothing_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
