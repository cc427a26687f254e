/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/counters.h"
#include "unit.h"

static void additions_and_subtractions_balance(void **state)
{
	struct gpucache_counters counters = { 0 };

	(void)state;
	gpc_counter_add(&counters.live_bytes, 512);
	gpc_counter_add(&counters.live_bytes, 1024);
	gpc_counter_sub(&counters.live_bytes, 512);
	assert_int_equal(gpc_counter_get(&counters.live_bytes), 1024);
	gpc_counter_set(&counters.live_bytes, 7);
	assert_int_equal(counters.live_bytes, 7);
}

static void a_peak_only_rises(void **state)
{
	struct gpucache_counters counters = { 0 };

	(void)state;
	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 100);
	gpc_counter_sub(&counters.live_bytes, 60);
	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 10);
	assert_int_equal(counters.live_bytes, 50);
	assert_int_equal(counters.peak_live_bytes, 100);
	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 51);
	assert_int_equal(counters.peak_live_bytes, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(additions_and_subtractions_balance),
		cmocka_unit_test(a_peak_only_rises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
