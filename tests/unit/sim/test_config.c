/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "unit.h"

#include "base/bytes.h"
#include "sim/gpu/config.h"

TEST(every_kind_of_key_is_read)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config,
				 "memory:16GiB,devices:2,malloc_us:1.5,driver:12040,clock:virtual"),
		0);
	assert_int_equal(config.memory, 16 * GPC_GIB);
	assert_int_equal(config.n_devices, 2);
	assert_int_equal(config.cost_ns[GPC_SIM_COST_MALLOC], 1500);
	assert_int_equal(config.driver_version, 12040);
	assert_true(config.virtual_clock);
	assert_int_equal(gpc_sim_config_parse(&config,
				 "queue:5,context_events:queued,free_waits_for:context,"
				 "host_access:direct,free_async:late"),
		0);
	assert_true(config.is_async_free_late);
	assert_true(config.is_host_near);
	assert_int_equal(config.queue, 5);
	assert_true(config.is_event_queued && config.free_waits_alone);
	assert_int_equal(gpc_sim_config_parse(&config,
				 "context_events:free,free_waits_for:device,"
				 "host_access:mapped,free_async:now"),
		0);
	assert_false(config.is_async_free_late);
	assert_false(config.is_host_near);
	assert_true(!config.is_event_queued && !config.free_waits_alone);
}

TEST(processes_and_faults_may_be_repeated)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config,
				 "foreign:1GiB,foreign:2GiB/77/python,fail:cuMemAlloc/3/700/2"),
		0);
	assert_int_equal(config.n_processes, 2);
	assert_int_equal(config.processes[1].pid, 77);
	assert_string_equal(config.processes[1].name, "python");
	assert_int_equal(config.n_faults, 1);
	assert_int_equal(config.faults[0].nth, 3);
	assert_int_equal(config.faults[0].code, 700);
	assert_int_equal(config.faults[0].count, 2);
}

TEST(the_file_for_launches_has_a_name_of_some_length)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	char text[400] = "launches:";

	assert_int_equal(gpc_sim_config_parse(&config, "calls:/tmp/calls,calls:"), 1);
	assert_string_equal(config.calls, "/tmp/calls");
	assert_string_equal(config.launches, "");
	assert_int_equal(gpc_sim_config_parse(&config, "launches:/tmp/work,launches:"), 1);
	assert_string_equal(config.launches, "/tmp/work");
	memset(text + strlen(text), 'x', sizeof config.launches);
	assert_int_equal(gpc_sim_config_parse(&config, text), 1);
}

TEST(what_is_not_understood_is_counted_and_changes_nothing)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config,
				 "memroy:1,memory:lots,devices:99,malloc_us:-1,clock:slow,x,"
				 "queue:65537,context_events:some,free_waits_for:me,"
				 "host_access:1,free_async:soon"),
		11);
	assert_int_equal(config.memory, 8 * GPC_GIB);
	assert_int_equal(config.n_devices, 1);
}

TEST(what_no_kernel_computed_reads_as_it_is_or_as_a_number)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_false(config.is_answered);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:zero"), 0);
	assert_true(config.is_answered);
	assert_int_equal(config.one_every, 0);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:one"), 0);
	assert_int_equal(config.one_every, 1);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:one/16"), 0);
	assert_int_equal(config.one_every, 16);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:garbage"), 0);
	assert_false(config.is_answered);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:two"), 1);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:one/0"), 1);
	assert_int_equal(gpc_sim_config_parse(&config, "reads:one/x"), 1);
}

TEST(published_costs_come_as_a_whole)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config, "costs:published,query_us:0"), 0);
	assert_int_equal(config.cost_ns[GPC_SIM_COST_RECORD], 244);
	assert_int_equal(config.cost_ns[GPC_SIM_COST_QUERY], 0);
}

TEST(only_the_devices_that_are_visible_are_left)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config, "devices:4"), 0);
	gpc_sim_config_set_visible(&config, "2,0,9,1");
	assert_int_equal(config.n_devices, 2);
	assert_int_equal(config.n_physical, 4);
	assert_int_equal(config.physical[0], 2);
	assert_int_equal(config.physical[1], 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const none[] = { "", "-1", "x,0" };

		config.n_devices = 4;
		gpc_sim_config_set_visible(&config, none[i]);
		assert_int_equal(config.n_devices, 0);
	}
	config.n_devices = 4;
	gpc_sim_config_set_visible(&config, "GPU-1234");
	assert_int_equal(config.n_devices, 4);
	gpc_sim_config_set_visible(&config, NULL);
	assert_int_equal(config.n_devices, 4);
	assert_int_equal(config.physical[3], 3);
}
