/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "why/kept_models.h"

/* Stacks 1 and 2 make weights, 3 makes what a pass of the model returns. */
static struct {
	struct gpc_stack_frames list;
	struct gpc_frame frames[3];
} stacks[4];
static struct gpucache_site sites[4];
static struct gpucache_oom oom;

#define LINEAR "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py"
#define MODULE "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"

static struct gpc_frame frame(const char *function, const char *file, bool is_library)
{
	return (struct gpc_frame){ .function = function,
		.file = file,
		.line = 7,
		.is_python = true,
		.is_library = is_library,
		.text = (uint64_t)(uintptr_t)file | 1 };
}

static const struct gpc_stack_frames *find_frames(void *self, uint32_t stack)
{
	return stack < 4 ? &stacks[stack].list : NULL;
}

static bool read_site(void *self, uint64_t i, struct gpucache_site *ret_site)
{
	*ret_site = sites[i];
	return true;
}

static const struct gpc_evidence evidence = {
	.frames = find_frames, .read_site = read_site, .n_sites = 4
};

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

static int start(void **state)
{
	const struct gpc_frame weight[] = { frame("Linear.__init__", LINEAR, true),
		frame("Net.__init__", "/home/me/net.py", false),
		frame("<module>", "/home/me/net.py", false) };
	const struct gpc_frame result[] = { frame("Linear.forward", LINEAR, true),
		frame("_call_impl", MODULE, true), frame("<module>", "/home/me/net.py", false) };

	memset(stacks, 0, sizeof stacks);
	memset(sites, 0, sizeof sites);
	memset(&oom, 0, sizeof oom);
	for (uint32_t id = 1; id < 4; id++) {
		stacks[id].list.n = 3;
		memcpy(stacks[id].list.frames, id < 3 ? weight : result, sizeof weight);
		gpc_frames_finish(&stacks[id].list);
	}
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
