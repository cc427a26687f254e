/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context/streams.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/rescue/asked.h"
#include "runtime/rescue/gather.h"
#include "world.h"

#define OLD 77 /* a number that no evidence has */

static struct gpc_gathered gathered;

static struct gpc_context *context_of_the_device(void)
{
	return gpc_runtime.devices[0].contexts[0];
}

/* True if the evidence at hand was kept. */
static bool is_kept(void)
{
	bool is_kept;

	gathered.oom.peak_requested = OLD;
	CHECK(world_enter());
	gpc_gather(context_of_the_device(), &gathered);
	gpc_runtime_leave();
	is_kept = gathered.oom.peak_requested == OLD;
	return is_kept;
}

static void changes_bit_by_bit(void)
{
	CUdeviceptr live, other;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&live, 300 * MIB));
	CHECK(!is_kept() && is_kept() && is_kept());
	CHECK(gathered.oom.balance.requested == 300 * MIB);
	CHECK(!world_malloc(&other, 512) && !is_kept() && is_kept());
	CHECK(!world_free(other) && !is_kept() && is_kept());
	CHECK(world_enter());
	gpc_runtime_capture_begins(stream);
	gpc_runtime_leave();
	CHECK(!is_kept() && is_kept());
	CHECK((gathered.oom.setup & GPUCACHE_OOM_CAPTURING));
	CHECK(world_malloc(&other, 2048 * MIB) &&
		is_kept()); /* out of reach: nothing was trimmed */
	CHECK(gathered.oom.balance.requested == 300 * MIB);
}

TEST(evidence_is_kept_until_something_moves)
{
	world_run("memory:1GiB,context:0", "stacks:off,oom_report:never", changes_bit_by_bit);
	world_assert_is_silent();
}

/* The same evidence judges requests that differ. */
static void fails_at_sizes(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 300 * MIB));
	CHECK(world_malloc(&ptr, 2048 * MIB) && world_malloc(&ptr, 900 * MIB));
	CHECK(world_oom(0)->requested == 2048 * MIB && world_oom(1)->requested == 900 * MIB);
	CHECK(world_oom(0)->verdict == GPUCACHE_VERDICT_IMPOSSIBLE);
	CHECK(world_oom(1)->verdict == GPUCACHE_VERDICT_EXHAUSTED);
	CHECK(world_oom(0)->n_holders == 1 && world_oom(1)->n_holders == 1);
	CHECK(world_oom(1)->number == 2 && world_oom(1)->short_by < world_oom(0)->short_by);
	CHECK(COUNTER(n_oom) == 2);
}

static void read_free(void)
{
	CHECK(world_enter());
	gpc_asked_note(1000 * MIB, 1024 * MIB);
	gpc_runtime_leave();
}

static __attribute__((noinline)) void fail_elsewhere(enum gpucache_verdict verdict, uint64_t taken)
{
	unsigned number = (unsigned)COUNTER(n_oom);
	CUdeviceptr ptr;

	CHECK(world_malloc(&ptr, 520 * MIB));
	CHECK(world_oom(number)->verdict == verdict);
	CHECK(world_oom(number)->taken_bytes == taken);
}

/* Sizes that follow from what was read: nearly all of it, and a round part of the GPU; and some that do not. */
static const struct size {
	uint64_t size;
	bool is_read;
	bool is_taken;
} sizes[] = {
	{ 900 * MIB, true, true },
	{ 900 * MIB, false, false },
	{ 1024 * MIB * 7 / 10, true, true },
	{ 714 * MIB, true, false },
	{ 1000 * MIB * 6 / 10, true, true },
};
static const struct size *row;

static void takes_what_it_read(void)
{
	CUdeviceptr ptr;

	world_start();
	if (row->is_read)
		read_free();
	CHECK(!world_malloc(&ptr, row->size));
	fail_elsewhere(row->is_taken ? GPUCACHE_VERDICT_PREALLOCATED : GPUCACHE_VERDICT_EXHAUSTED,
		row->is_taken ? row->size : 0);
	CHECK(!world_free(ptr));
	CHECK(!world_malloc(&ptr, 512 * MIB));
	fail_elsewhere(GPUCACHE_VERDICT_EXHAUSTED, 0);
}

TEST(what_is_sized_by_the_free_memory_is_a_pool)
{
	for (row = sizes; row < sizes + sizeof sizes / sizeof sizes[0]; row++)
		world_run("memory:1GiB,context:0", "oom_report:never", takes_what_it_read);
	world_assert_is_silent();
}

TEST(each_failure_is_judged_and_counted)
{
	world_run("memory:1GiB,context:0", "oom_report:never", fails_at_sizes);
	world_assert_is_silent();
}

static void asks_nobody(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB));
	CHECK(!gpc_runtime.nvml_was_tried);
	CHECK(world_oom(0)->balance.other_processes == GPUCACHE_UNKNOWN);
}

static void asks_nvml(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB));
	CHECK(gpc_runtime.nvml_was_tried);
}

TEST(the_neighbours_are_asked_for_what_is_printed_only)
{
	world_run("memory:1GiB", "stacks:off,oom_report:never", asks_nobody);
	world_assert_is_silent();
	world_run("memory:1GiB", "stacks:off", asks_nvml);
}
