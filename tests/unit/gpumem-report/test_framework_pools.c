/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"
#include "tools/gpumem-report/holders/framework_pools.h"

#define GPU (UINT64_C(80) << 30)

static struct gpucache_holder holders[2];

/* Finds the pool of what XLA holds, in a run with this line, if any, in its environment. */
static bool is_taken_at_once(void **state, const char *line, struct gpc_framework_pool *ret_pool)
{
	static const uint64_t native[] = { 0x2001000 };
	struct recording_file *file = *state;
	struct gpc_recording *recording;
	bool is_at_once;

	builder_module(&file->b, "/jax_plugins/xla_cuda12/xla_cuda_plugin.so", 0x2000000, 0x3000000,
		0x2000000);
	holders[0].stack = holders[1].stack = builder_stack(&file->b, native, 1, NULL, 0);
	if (line)
		builder_line(&file->b, line);
	recording = open_written(&file->b);
	*ret_pool = gpc_framework_find_pool(recording, holders, 2, GPU);
	is_at_once = gpc_framework_took_at_once(recording, ret_pool);
	gpc_recording_close(recording);
	return is_at_once;
}

static int set_up(void **state)
{
	holders[0] = (struct gpucache_holder){ .n_blocks = 1, .bytes = GPU / 5 };
	holders[1] = (struct gpucache_holder){ .n_blocks = 1, .bytes = GPU / 20 };
	return recording_file_begin(state);
}

FIXTURE(set_up, recording_file_end);

TEST(all_that_a_framework_holds_is_its_pool)
{
	struct gpc_framework_pool pool;

	assert_true(is_taken_at_once(state, NULL, &pool));
	assert_string_equal(pool.framework->name, "XLA");
	assert_int_equal(pool.bytes, GPU / 4);
	assert_int_equal(pool.n_blocks, 2);
}

TEST(a_smaller_part_of_the_gpu_is_no_pool)
{
	struct gpc_framework_pool pool;

	holders[1].bytes--;
	assert_false(is_taken_at_once(state, NULL, &pool));
	assert_null(pool.framework);
}

TEST(a_framework_that_was_told_to_have_none_has_none)
{
	struct gpc_framework_pool pool;

	assert_false(is_taken_at_once(state, "env XLA_PYTHON_CLIENT_ALLOCATOR=platform", &pool));
	assert_null(pool.framework);
}

TEST(a_pool_that_grows_was_not_taken_at_once)
{
	struct gpc_framework_pool pool;

	assert_false(is_taken_at_once(state, "env XLA_PYTHON_CLIENT_PREALLOCATE=false", &pool));
	assert_non_null(pool.framework);
}

TEST(nor_was_one_of_many_blocks)
{
	struct gpc_framework_pool pool;

	holders[0].n_blocks = 4;
	assert_false(is_taken_at_once(state, NULL, &pool));
	assert_non_null(pool.framework);
}
