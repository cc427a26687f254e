/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "tests/unit/names/made_frames.h"
#include "tests/unit/why/made_evidence.h"
#include "why/kept_models.h"

#define LINEAR "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py"
#define MODULE "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"

static void add(uint32_t stack, uint32_t live, uint64_t made, uint64_t first_ns, uint64_t last_ns)
{
	sites[stack] = (struct gpucache_site){ .stack = stack,
		.total_blocks = made,
		.live_blocks = live,
		.first_ns = first_ns,
		.last_ns = last_ns };
	if (live)
		oom.holders[oom.n_holders++] =
			(struct gpucache_holder){ stack, live, live * GPC_MIB };
}

/* Stacks 1 and 2 make weights, 3 makes what a pass of the model returns. */
static int start(void **state)
{
	const struct gpc_frame weight[] = { python("Linear.__init__", LINEAR, true),
		python("Net.__init__", "/home/me/net.py", false),
		python("<module>", "/home/me/net.py", false) };
	const struct gpc_frame result[] = { python("Linear.forward", LINEAR, true),
		python("_call_impl", MODULE, true), python("<module>", "/home/me/net.py", false) };

	clear_evidence();
	for (uint32_t id = 1; id < 4; id++)
		set(id, id < 3 ? weight : result, 3);
	return 0;
}

FIXTURE(start, NULL);

TEST(models_made_after_passes_of_those_before_are_found)
{
	struct gpc_kept_models models;

	add(1, 5, 5, 10, 50);
	add(2, 4, 4, 11, 41);
	add(3, 0, 4, 12, 42);
	models = gpc_kept_models_find(&evidence, &oom);
	assert_int_equal(models.stack, 1);
	assert_int_equal(models.n_blocks, 9);
	assert_int_equal(models.held, 9 * GPC_MIB);
	assert_int_equal(models.bytes, 7 * GPC_MIB);
}

TEST(a_cache_that_drops_the_oldest_is_not)
{
	add(1, 6, 60, 10, 500);
	add(3, 0, 60, 12, 502);
	assert_int_equal(gpc_kept_models_find(&evidence, &oom).stack, 0);
}

TEST(the_layers_of_one_model_are_not)
{
	add(1, 24, 24, 10, 30);
	add(3, 0, 480, 31, 90);
	assert_int_equal(gpc_kept_models_find(&evidence, &oom).stack, 0);
}

/* A pass that finds out a size, and a model and its average, are no loop. */
TEST(one_pass_between_layers_and_a_second_model_are_not)
{
	add(1, 24, 24, 10, 50);
	add(2, 2, 2, 10, 50);
	add(3, 0, 1, 30, 30);
	assert_int_equal(gpc_kept_models_find(&evidence, &oom).stack, 0);
}
