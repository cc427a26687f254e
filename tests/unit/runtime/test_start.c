/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "record/store.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "world.h"

static void start_and_say_nothing(void)
{
	world_start();
	CHECK(gpc_runtime.n_devices == 2);
	CHECK(strcmp(gpc_runtime.devices[1].known.name, "Simulated GPU") == 0);
	CHECK(strncmp(gpc_runtime.devices[0].known.uuid, "GPU-", 4) == 0);
	CHECK(gpc_runtime.devices[0].known.total_bytes == 8 * GPC_GIB);
	CHECK(gpc_runtime.record.path[0] && access(gpc_runtime.record.path, R_OK) == 0);
	CHECK(gpc_runtime.has_stacks);
}

static void start_as_another_model(void)
{
	world_start();
	CHECK(strcmp(gpc_runtime.devices[0].known.name, "NVIDIA L4, simulated") == 0);
}

TEST(every_device_is_known_after_the_start)
{
	world_run("devices:2", NULL, start_and_say_nothing);
	world_assert_is_silent();
}

TEST(a_simulated_gpu_is_called_so)
{
	world_run("gpu:l4", NULL, start_as_another_model);
	world_assert_is_silent();
}

static void start_where_devices_are_named(void)
{
	world_start();
	CHECK(gpc_runtime.devices[0].known.physical == 3);
	CHECK(gpc_runtime.devices[1].known.physical == 2);
	CHECK(strcmp(gpc_runtime.devices[0].known.pci_bus_id, "0000:03:00.0") == 0);
}

static void start_where_devices_are_named_otherwise(void)
{
	world_start();
	for (unsigned i = 0; i < gpc_runtime.n_devices; i++)
		CHECK(gpc_runtime.devices[i].known.physical == 0);
}

TEST(the_number_of_nvidia_smi_is_recorded)
{
	setenv("CUDA_VISIBLE_DEVICES", "2,1", 1);
	world_run("devices:3", NULL, start_where_devices_are_named);
	setenv("CUDA_VISIBLE_DEVICES", "GPU-67707573", 1);
	world_run("devices:3", NULL, start_where_devices_are_named_otherwise);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void switched_off(void)
{
	CUdeviceptr ptr = 0;

	setenv("GPUCACHE", "0", 1);
	world_init();
	CHECK(!world_enter());
	CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_PASS);
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(!gpc_runtime.record.base && gpc_runtime.record.path[0] == '\0');
	CHECK(access(getenv("GPUCACHE_OUTPUT"), F_OK) != 0);
}

TEST(gpucache_0_passes_everything_and_makes_no_file)
{
	world_run(NULL, NULL, switched_off);
	world_assert_is_silent();
}

static void start_only(void)
{
	world_start();
}

TEST(bad_options_are_named_and_the_program_goes_on)
{
	world_run(NULL, "stakcs:off,cache:perhaps,record:off", start_only);
	world_assert_says("stakcs");
	world_assert_says("stacks"); /* the nearest key */
	world_assert_says("perhaps");
}

TEST(more_mistakes_than_are_shown_are_counted)
{
	char conf[1024] = "record:off";

	for (int i = 0; i < GPC_CONFIG_MAX_WARNINGS + 3; i++)
		strcat(conf, ",nonsense:1");
	world_run(NULL, conf, start_only);
	world_assert_says("3 more mistakes");
}

TEST(help_prints_the_table_and_ends_with_0)
{
	world_run_to(NULL, "help:true", start_only, 0);
	world_assert_says("oom_report");
	world_assert_says("per_process_memory_fraction");
}

TEST(strict_ends_with_2_where_an_option_is_bad)
{
	world_run_to(NULL, "strict:true,nonsense:1", start_only, 2);
	world_assert_says("nonsense");
	world_assert_says("strict:true ends the program");
}

static void strict_alone(void)
{
	world_start();
	CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_RUNNING);
}

TEST(strict_without_a_mistake_starts)
{
	world_run(NULL, "strict:true,record:off", strict_alone);
	world_assert_is_silent();
}

static void no_stacks(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!gpc_runtime.has_stacks && gpc_runtime_request(MIB).mark == 0 &&
		gpc_runtime_stack_of(GPC_GIB) == 0);
	CHECK(!world_malloc(&ptr, 512));
}

TEST(stacks_off_takes_none)
{
	world_run(NULL, "stacks:off,record:off", no_stacks);
}

static uint64_t site_sum(size_t field)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < gpc_record_site_end(&gpc_runtime.record); i++)
		sum += *(uint64_t *)((char *)&gpc_runtime.record.sites[i] + field);
	return sum;
}

#define SITE_SUM(field) site_sum(offsetof(struct gpucache_site, field))

#define N_SMALL 4000u

static void sampled(void)
{
	static CUdeviceptr ptrs[N_SMALL];
	unsigned n_taken = 0;

	world_start();
	CHECK(gpc_runtime.record.header->sample_bytes == MIB);
	for (unsigned i = 0; i < N_SMALL; i++)
		n_taken += gpc_runtime_stack_of(MIB / 4) != 0;
	/* A quarter of them; the bounds are seven standard deviations away. */
	CHECK(n_taken > 800 && n_taken < 1200);
	CHECK(gpc_runtime_stack_of(MIB) != 0 && gpc_runtime_request(MIB).mark != 0);

	for (unsigned i = 0; i < N_SMALL; i++)
		CHECK(!world_malloc(&ptrs[i], MIB / 4));
	CHECK(SITE_SUM(live_bytes) > 800 * MIB && SITE_SUM(live_bytes) < 1200 * MIB);
	CHECK(SITE_SUM(live_blocks) == SITE_SUM(live_bytes) / (MIB / 4));
	for (unsigned i = 0; i < N_SMALL; i++)
		CHECK(!world_free(ptrs[i]));
	CHECK(SITE_SUM(live_bytes) == 0 && SITE_SUM(live_blocks) == 0);
	CHECK(SITE_SUM(total_bytes) > 800 * MIB);
}

TEST(sampled_stacks_stand_for_the_others)
{
	world_run(NULL, "stacks:sampled", sampled);
}

static void unsampled(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(gpc_runtime.record.header->sample_bytes == 0);
	for (unsigned i = 0; i < 10; i++)
		CHECK(!world_malloc(&ptr, 512));
	CHECK(SITE_SUM(live_bytes) == 5120 && SITE_SUM(live_blocks) == 10);
}

TEST(by_default_every_request_has_its_stack)
{
	world_run(NULL, NULL, unsampled);
}

static void bad_place(void)
{
	setenv("GPUCACHE_OUTPUT", "/dev/null/at/all", 1);
	world_start();
	CHECK(gpc_runtime.record.path[0]);
	unlink(gpc_runtime.record.path);
}

TEST(a_place_that_cannot_be_used_is_named)
{
	world_run(NULL, NULL, bad_place);
	world_assert_says("/dev/null/at/all cannot be used");
}

static void bad_letter(void)
{
	setenv("GPUCACHE_OUTPUT", "/tmp/gpucache_%Z_%p", 1);
	world_start();
	unlink(gpc_runtime.record.path);
}

TEST(an_unknown_letter_of_the_pattern_is_named)
{
	world_run(NULL, NULL, bad_letter);
	world_assert_says("%Z is not known");
}

static void limits(void)
{
	world_start();
	CHECK(gpc_runtime.devices[0].budget.limit_bytes == GPC_GIB);
}

TEST(the_smaller_of_limit_and_fraction_holds)
{
	world_run("memory:4GiB", "record:off,limit:50%,per_process_memory_fraction:0.25", limits);
	world_run("memory:4GiB", "record:off,limit:1GiB,per_process_memory_fraction:0.5", limits);
	world_run("memory:2GiB", "record:off,per_process_memory_fraction:0.5", limits);
}
