/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/stacks.h"

#include "world.h"

static uint32_t of_size(size_t size)
{
	return gpc_runtime_stack_of(size);
}

static void switched_off(void)
{
	world_start();
	CHECK(gpc_runtime_request(MIB).mark == 0);
	CHECK(of_size(1 << 30) == 0);
}

TEST(without_stacks_there_is_none)
{
	world_run(NULL, "stacks:off", switched_off);
}

static void twice(void)
{
	uint32_t ids[2];

	world_start();
	/* Not unrolled: one place. */
	for (volatile int i = 0; i < 2; i++)
		ids[i] = gpc_runtime_request(MIB).mark;
	CHECK(ids[0] != 0);
	CHECK(ids[0] == ids[1]);
}

TEST(a_place_has_one_number)
{
	world_run(NULL, "stacks:all", twice);
}

/* Requests above the sample size are always sampled, small ones rarely. */
static void sampled(void)
{
	unsigned n_taken = 0;

	world_start();
	CHECK(of_size((size_t)1 << 30) != 0);
	for (int i = 0; i < 1000; i++)
		n_taken += of_size(1) != 0;
	CHECK(n_taken < 10);
}

TEST(small_requests_are_sampled)
{
	world_run(NULL, "stacks:sampled", sampled);
}

static void of_one_call(void)
{
	uint32_t shared = 0;
	uint32_t first;
	unsigned n_taken = 0;

	world_start();
	first = gpc_runtime_stack_of_one(MIB, &shared);
	CHECK(first != 0 && shared == first);
	/* From another place: the walk is not repeated. */
	CHECK(gpc_runtime_stack_of_one(MIB, &shared) == first);
	for (int i = 0; i < 1000; i++)
		n_taken += gpc_runtime_stack_of_one(1, &shared) != 0;
	CHECK(n_taken < 10);
}

TEST(requests_of_one_call_share_a_walk_and_are_sampled_one_by_one)
{
	world_run(NULL, "stacks:sampled", of_one_call);
}
