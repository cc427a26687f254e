/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/why/made_evidence.h"
#include "why/checkpoints.h"
#include "why/torch_facts.h"

#define MODULE "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"
#define OP     "at::_ops::relu::redispatch"

/* main:11 calls GPT, which makes one embedding at :26, and calls a Block at :27 again and again; its attention is a module. */
enum {
	EMBEDDED = 1,
	NORMED,
	FIRST_ATTENDED, /* the first call of a library makes it elsewhere */
	ATTENDED,
};

static struct gpc_frame python(const char *function, uint32_t line)
{
	return (struct gpc_frame){ .function = function,
		.file = strcmp(function, "_call_impl") == 0 ? MODULE : "model.py",
		.line = line,
		.place = line,
		.text = line,
		.is_python = true,
		.is_library = strcmp(function, "_call_impl") == 0 };
}

static void make(uint32_t id, const struct gpc_frame *frames, size_t n, uint64_t n_blocks)
{
	struct gpc_frame with_op[MAX_FRAMES] = { { .function = OP, .is_library = true } };

	memcpy(&with_op[1], frames, n * sizeof *frames);
	set(id, with_op, n + 1);
	sites[id] = (struct gpucache_site){ .stack = id, .total_blocks = n_blocks };
}

static int start(void **state)
{
	const struct gpc_frame call = python("_call_impl", 1);
	const struct gpc_frame main_ = python("main", 11), gpt = python("GPT.forward", 27);
	const struct gpc_frame embedded[] = { python("GPT.forward", 26), call, main_ };
	const struct gpc_frame normed[] = { python("make.<locals>.Block.forward", 16), call, gpt,
		call, main_ };
	const struct gpc_frame attended[] = { python("Attention.forward", 14), call,
		python("make.<locals>.Block.forward", 17), call, gpt, call, main_ };

	clear_evidence();
	make(EMBEDDED, embedded, N_OF(embedded), 1);
	make(NORMED, normed, N_OF(normed), 10);
	make(FIRST_ATTENDED, attended, N_OF(attended), 1);
	make(ATTENDED, attended, N_OF(attended), 9);
	return 0;
}

FIXTURE(start, NULL);

static const char *find(uint32_t stack)
{
	static char buf[GPC_PLACE_SIZE];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_checkpoint_place(&evidence, &oom, stack, &text);
	return buf;
}

TEST(a_checkpoint_belongs_around_the_block_that_is_called_again_and_again)
{
	assert_string_equal(
		find(ATTENDED), "each Block where it is called, GPT.forward model.py:27");
	assert_string_equal(find(NORMED), "each Block where it is called, GPT.forward model.py:27");
}

TEST(passes_that_are_over_make_no_block_of_the_model)
{
	sites[EMBEDDED].total_blocks = sites[NORMED].total_blocks = sites[ATTENDED].total_blocks =
		10;
	assert_string_equal(find(ATTENDED), "");
	sites[EMBEDDED].total_blocks = 5;
	assert_string_equal(
		find(ATTENDED), "each Block where it is called, GPT.forward model.py:27");
}

static void hold(uint32_t stack, uint32_t n_blocks, uint64_t bytes)
{
	oom.holders[oom.n_holders++] = (struct gpucache_holder){ stack, n_blocks, bytes };
}

static struct gpc_facts tell(void)
{
	static struct gpc_torch_texts texts;
	struct gpc_facts facts = gpc_facts_unknown();

	oom.torch.reserved = oom.torch.allocated = UINT64_C(1) << 34;
	oom.framework = GPUCACHE_FRAMEWORK_PYTORCH;
	oom.kind = GPUCACHE_KIND_DEVICE;
	oom.stack = NORMED;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	return facts;
}

TEST(few_results_are_not_kept_for_a_backward_pass)
{
	hold(ATTENDED, 5, UINT64_C(1) << 33);
	hold(EMBEDDED, 2, UINT64_C(1) << 30);
	assert_int_equal(tell().is_generating, GPC_YES);
	oom.holders[1].n_blocks = 3;
	assert_int_equal(tell().is_generating, GPC_NO);
}

TEST(tensors_are_small_that_share_segments)
{
	hold(ATTENDED, 100, UINT64_C(100) * (10 << 20));
	assert_int_equal(tell().is_small, GPC_NO);
	oom.holders[0].bytes -= 100;
	assert_int_equal(tell().is_small, GPC_YES);
}

TEST(what_no_block_makes_has_no_place)
{
	assert_string_equal(find(EMBEDDED), "");
	assert_string_equal(find(N_STACKS), "");
}
