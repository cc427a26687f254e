/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "tests/unit/names/made_frames.h"
#include "tests/unit/why/made_evidence.h"
#include "why/kept_results.h"
#include "why/torch_facts.h"

#define N_PASSES 45u
#define MODULE   "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"

/* Live blocks of the stack, of MIB each, of those that were made. */
static void hold(uint32_t stack, uint64_t mib, uint32_t live, uint64_t made)
{
	oom.holders[oom.n_holders++] =
		(struct gpucache_holder){ stack, live, live * mib * GPC_MIB };
	sites[stack] = (struct gpucache_site){ .stack = stack,
		.live_blocks = live,
		.live_bytes = live * mib * GPC_MIB,
		.total_blocks = made,
		.total_bytes = made * mib * GPC_MIB,
		.first_ns = 1,
		.last_ns = 1000 };
	oom.torch.allocated += live * mib * GPC_MIB;
}

/* Stacks 1 and 2: what layers of a model make; 3: its input; 4: labels. */
static int start(void **state)
{
	const struct gpc_frame relu[] = { native("at::_ops::relu::redispatch"),
		native("at::_ops::relu::call"), python("_call_impl", MODULE, true),
		python("<module>", "/home/me/infer.py", false) };
	const struct gpc_frame linear[] = {
		python("Linear.forward", "/v/lib/python3.12/site-packages/torch/nn/linear.py",
			true),
		python("_call_impl", MODULE, true), python("<module>", "/home/me/infer.py", false)
	};
	const struct gpc_frame input[] = { native("at::_ops::randn::call"),
		python("<module>", "/home/me/input.py", false) };

	clear_evidence();
	oom = (struct gpucache_oom){ .torch = { .requested = 16 * GPC_MIB,
					     .reserved = 2 * GPC_GIB },
		.short_by = 6 * GPC_MIB };
	set(1, linear, 3);
	set(2, relu, 4);
	set(3, input, 2);
	set(4, input, 2);
	return 0;
}

FIXTURE(start, NULL);

TEST(results_of_each_pass_are_found)
{
	const struct gpc_frame step[] = { native("at::_ops::clone::call"),
		python("SGD.step", "/v/lib/python3.12/site-packages/torch/optim/sgd.py", true),
		python("<module>", "/home/me/infer.py", false) };
	struct gpc_kept kept;

	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES);
	kept = gpc_kept_find(&evidence, &oom);
	assert_int_equal(kept.stack, 1);
	assert_int_equal(kept.n_passes, N_PASSES);
	/* What an optimizer makes once, and the end of the program frees, is no count of passes. */
	set(4, step, 3);
	sites[4] = (struct gpucache_site){ .stack = 4, .total_blocks = 8, .last_ns = 1000 };
	assert_int_equal(gpc_kept_find(&evidence, &oom).n_passes, N_PASSES);
}

/* Two layers share a stack, and the program keeps what the second makes: half of it, and most bytes. */
TEST(a_stack_that_frees_half_hides_no_results)
{
	struct gpc_kept kept;

	hold(1, 17, N_PASSES, 2 * N_PASSES);
	hold(2, 16, N_PASSES, N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES);
	kept = gpc_kept_find(&evidence, &oom);
	assert_int_equal(kept.stack, 2);
	assert_int_equal(kept.n_passes, N_PASSES);
}

/* Three layers share a stack, and only what the last makes stays, with the inputs. */
TEST(a_stack_that_keeps_one_for_each_input_holds_results)
{
	struct gpc_kept kept;

	hold(1, 16, N_PASSES, 3 * N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES);
	kept = gpc_kept_find(&evidence, &oom);
	assert_int_equal(kept.stack, 1);
	assert_int_equal(kept.n_passes, N_PASSES);
	oom.n_holders = 0;
	hold(1, 16, N_PASSES, 3 * N_PASSES);
	hold(3, 4, N_PASSES, 2 * N_PASSES); /* inputs come and go */
	assert_int_equal(gpc_kept_find(&evidence, &oom).stack, 0);
}

TEST(layers_of_one_pass_are_no_results)
{
	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 4, 1, 1);
	assert_int_equal(gpc_kept_find(&evidence, &oom).stack, 0);
}

/* What was guessed, and the labels to compare it with, stay; the inputs do not. */
TEST(labels_that_stay_beside_results_are_no_inputs)
{
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 400, 1, N_PASSES);
	hold(4, 1, N_PASSES, N_PASSES);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_result_alone, GPC_YES);
	oom.holders[1].n_blocks = N_PASSES;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_result_alone, GPC_NO);
}

/* Only PyTorch's frames tell what its memory is for. */
TEST(arrays_of_xla_are_left_alone)
{
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;
	GPC_TEXT(held, 400);

	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES + 5);
	oom.framework = GPUCACHE_FRAMEWORK_XLA;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	gpc_say_held(&evidence, &oom, &held);
	assert_true(facts.by_purpose == GPUCACHE_UNKNOWN);
	assert_true(facts.kept_passes == GPUCACHE_UNKNOWN);
	assert_string_equal(held.buf, "");
	oom.framework = GPUCACHE_FRAMEWORK_PYTORCH;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	gpc_say_held(&evidence, &oom, &held);
	assert_true(facts.by_purpose != GPUCACHE_UNKNOWN);
	assert_int_equal(facts.kept_passes, N_PASSES - 1);
	assert_string_not_equal(held.buf, "");
	oom.stack = 3;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.freed_before, 5);
}

/* The thread of a backward pass, which asks, has no frames of the program. */
TEST(the_library_that_runs_the_model_is_known_by_what_it_holds)
{
	const struct gpc_frame trained[] = { native("at::_ops::relu::redispatch"),
		python("Trainer.training_step",
			"/v/lib/python3.12/site-packages/transformers/trainer.py", true),
		python("<module>", "/home/me/train.py", false) };
	const struct gpc_frame half[] = { native("at::_ops::relu::redispatch"),
		python("autocast_decorator.<locals>.decorate_autocast",
			"/v/lib/python3.12/site-packages/torch/amp/autocast_mode.py", true) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	hold(1, 16, N_PASSES, N_PASSES);
	hold(2, 4, N_PASSES, N_PASSES);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_null(facts.trainer);
	set(2, trained, 3);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_string_equal(facts.trainer, "the Trainer of transformers");
	assert_non_null(strstr(facts.trainer_less, "gradient_checkpointing=True"));
	assert_string_equal(facts.trainer_half, "bf16=True");
	assert_null(facts.sharder);
	facts = gpc_facts_unknown();
	set(1, half, 2);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_null(facts.trainer_half); /* it is on */
}

#define TORCH "/v/lib/python3.12/site-packages/torch/"

/* PyTorch's own Python, which a node of the backward pass calls, is no place; nor is a thread of PyTorch's. */
TEST(a_node_of_the_backward_pass_is_the_site_of_what_it_calls)
{
	const struct gpc_frame node = native("torch::autograd::generated::MmBackward0::apply");
	const struct gpc_frame routed[] = { native("at::_ops::mm::call"),
		python("eager_router", TORCH "_native/registry.py", true), node };
	const struct gpc_frame called[] = { native("at::_ops::mm::call"), node,
		python("backward", TORCH "autograd/__init__.py", true) };
	const struct gpc_frame thread[] = { native(NULL), native(NULL) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	hold(1, 16, N_PASSES, N_PASSES);
	set(4, routed, 3);
	assert_int_equal(stacks[4].list.site, 2);
	oom.stack = 4;
	facts.asked_site = 4;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_in_backward, GPC_YES);
	assert_int_equal(facts.asked_site, 4);
	set(4, called, 3);
	assert_int_equal(stacks[4].list.site, 2);
	set(4, thread, 2);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_in_backward, GPC_NO);
	assert_true(facts.asked_site == GPUCACHE_UNKNOWN);
}

TEST(what_joins_the_parts_that_are_kept_is_known)
{
	const struct gpc_frame cat[] = { native("at::_ops::cat::call"),
		python("predict", "/home/me/infer.py", false) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	hold(1, 16, 8, 8);
	set(4, cat, 2);
	oom.stack = 4;
	oom.torch.requested = 128 * GPC_MIB;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_joined, GPC_YES);
	oom.torch.requested = 147 * GPC_MIB; /* 8/7 of the parts */
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_joined, GPC_NO);
	oom.torch.requested = 128 * GPC_MIB;
	oom.holders[0].n_blocks--;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_joined, GPC_NO);
}

/* PyTorch asks for a segment less often than once a pass. */
TEST(segments_for_inputs_are_no_passes)
{
	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES);
	hold(4, 4, 0, N_PASSES / 3);
	assert_int_equal(gpc_kept_find(&evidence, &oom).n_passes, N_PASSES / 3);
	sites[4].flags = GPUCACHE_SITE_ARENA;
	assert_int_equal(gpc_kept_find(&evidence, &oom).n_passes, N_PASSES);
}

TEST(what_grows_in_a_function_of_autograd_is_known)
{
	const struct gpc_frame function[] = { native("at::_ops::mul::call"),
		python("Gate.forward", "/home/me/gate.py", false),
		python("Net.forward", "/home/me/gate.py", false),
		python("_call_impl", MODULE, true) };
	const struct gpc_frame module[] = { native("at::_ops::mul::call"),
		python("Net.forward", "/home/me/gate.py", false),
		python("_call_impl", MODULE, true) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	hold(1, 16, N_PASSES, N_PASSES);
	hold(3, 4, N_PASSES, N_PASSES);
	sites[1].flags = GPUCACHE_SITE_CAPTURED;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_in_function, GPC_NO);
	assert_int_equal(facts.is_captured, GPC_YES);
	set(1, function, 4);
	sites[1].flags = 0;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_captured, GPC_NO);
	facts.growth_site = 1;
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_in_function, GPC_YES);
	set(1, module, 3);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_int_equal(facts.is_in_function, GPC_NO);
}

/* The row of the stage that shards most decides, whichever stack has it. */
TEST(what_is_sharded_is_known_by_any_stack)
{
	static const struct {
		const char *file;
		const char *setting;
	} sharders[] = { { "torch/distributed/fsdp/_fully_shard/_fsdp_param.py",
				 "CPUOffloadPolicy" },
		{ "deepspeed/runtime/engine.py", "ZeRO" },
		{ "deepspeed/runtime/zero/stage3.py", "ZeRO-3 has sharded it" },
		{ "deepspeed/runtime/zero/stage_1_and_2.py", "ZeRO stage 3" } };
	const struct gpc_frame engine[] = { native("at::_ops::empty::call"),
		python("DeepSpeedEngine.__init__",
			"/v/lib/python3.12/site-packages/deepspeed/runtime/engine.py", true) };
	char path[200];

	for (size_t i = 0; i < sizeof sharders / sizeof sharders[0]; i++) {
		const struct gpc_frame frames[] = { native("at::_ops::empty::call"),
			python("make", path, true),
			python("<module>", "/home/me/train.py", false) };
		struct gpc_facts facts = gpc_facts_unknown();
		struct gpc_torch_texts texts;

		snprintf(path, sizeof path, "/v/lib/python3.12/site-packages/%s", sharders[i].file);
		hold(1, 400, N_PASSES, N_PASSES);
		hold(2, 4, N_PASSES, N_PASSES);
		set(2, frames, 3);
		if (strstr(path, "deepspeed"))
			set(1, engine, 2);
		gpc_torch_facts(&evidence, &oom, &facts, &texts);
		assert_non_null(facts.sharder);
		assert_non_null(strstr(facts.sharder_less, sharders[i].setting));
	}
}

/* vLLM asks for weights, then for its cache, each with other settings. */
TEST(the_phase_of_a_library_decides_which_settings_are_named)
{
	static const struct {
		const char *function;
		const char *setting;
	} phases[] = { { "Worker.load_model", "quantization" },
		{ "Worker.initialize_from_config", "kv_cache_memory_bytes" },
		{ "Worker.determine_available_memory", "max_num_batched_tokens" },
		{ "Worker.execute_model", "gpu_memory_utilization" } };

	hold(2, 400, N_PASSES, N_PASSES);
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
		const struct gpc_frame frames[] = { native("at::_ops::empty::call"),
			python(phases[i].function,
				"/v/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py",
				true),
			python("load_model", "/home/me/serve.py", false) };
		struct gpc_facts facts = gpc_facts_unknown();
		struct gpc_torch_texts texts;

		set(2, frames, 3);
		oom.stack = 2;
		gpc_torch_facts(&evidence, &oom, &facts, &texts);
		assert_string_equal(facts.trainer, "vLLM");
		assert_non_null(strstr(facts.trainer_less, phases[i].setting));
		oom.stack = 0; /* what an earlier phase holds says nothing of this one */
		gpc_torch_facts(&evidence, &oom, &facts, &texts);
		assert_non_null(strstr(facts.trainer_less, "gpu_memory_utilization"));
	}
}

/* Layers of a model that is being built grow, too; models that stay after each other have run. */
TEST(weights_that_grow_before_anything_has_run_may_be_of_one_model)
{
	const struct gpc_frame weight[] = { native("at::_ops::empty::call"),
		python("Linear.__init__",
			"/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", true),
		python("<module>", "/home/me/serve.py", false) };

	set(3, weight, 3);
	hold(3, 40, 24, 24);
	hold(2, 4, 1, 1);
	sites[2].last_ns = sites[3].first_ns;
	oom.growth_stack = 3;
	assert_true(gpc_kept_may_be_one_model(&evidence, &oom));
	sites[2].last_ns++;
	assert_false(gpc_kept_may_be_one_model(&evidence, &oom));
	sites[2].last_ns--;
	sites[3].total_bytes = 2 * sites[3].live_bytes;
	assert_false(gpc_kept_may_be_one_model(&evidence, &oom));
	sites[3].total_bytes = sites[3].live_bytes;
	oom.growth_stack = 2;
	assert_false(gpc_kept_may_be_one_model(&evidence, &oom));
}

/* The program's own files may have the names of a library's. */
TEST(files_of_the_program_are_of_no_library)
{
	const struct gpc_frame own[] = { native("at::_ops::relu::redispatch"),
		python("train", "/home/me/transformers/trainer.py", false),
		python("keep", "/home/me/copy.py", false) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	set(2, own, 3);
	hold(2, 400, N_PASSES, N_PASSES);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_null(facts.trainer);
	assert_null(facts.copy_place);
}

static const char *validating_place(void)
{
	static struct gpc_torch_texts texts;
	struct gpc_facts facts = gpc_facts_unknown();

	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	return facts.validating_place;
}

TEST(an_evaluation_that_keeps_its_first_pass_is_found)
{
	const struct gpc_frame result[] = { native("at::_ops::relu::redispatch"),
		python("_call_impl", MODULE, true),
		python("validate", "/home/me/train.py", false) };
	const struct gpc_frame decorated[] = { native("at::_ops::relu::redispatch"),
		python("validate", "/home/me/train.py", false),
		python("decorate_context",
			"/v/lib/python3.12/site-packages/torch/utils/_contextlib.py", true) };
	const struct gpc_frame gradient[] = { native(
		"torch::autograd::generated::ReluBackward0::apply(std::vector&&)") };

	set(1, result, 3);
	set(2, gradient, 1);
	hold(1, 256, 5, 11);
	hold(2, 1, 0, 9);
	oom.stack = 1;
	sites[1].first_ns = 100;
	sites[2].last_ns = 99;
	assert_non_null(validating_place());
	assert_int_equal(strncmp(validating_place(), "validate train.py:7", 19), 0);
	sites[1].total_bytes = 17 * 256 * GPC_MIB; /* most of it is freed */
	assert_null(validating_place());
	sites[1].total_bytes = 16 * 256 * GPC_MIB;
	oom.holders[0].n_blocks = 4; /* as within a layer */
	assert_null(validating_place());
	oom.holders[0].n_blocks = 5;
	sites[2].last_ns = 100; /* it is part of a training step */
	assert_null(validating_place());
	sites[2].last_ns = 0; /* nothing was trained */
	assert_null(validating_place());
	sites[2].last_ns = 99;
	assert_non_null(validating_place());
	set(1, decorated, 3);
	assert_null(validating_place());
}

TEST(a_copy_of_the_model_is_named)
{
	const struct gpc_frame copied[] = { native("at::_ops::clone::redispatch"),
		python("deepcopy", "/usr/lib/python3.12/copy.py", true),
		python("<module>", "/home/me/train.py", false) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	set(2, copied, 3);
	hold(2, 400, 1, 1);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_non_null(strstr(facts.copy_place, "train.py:7"));
	assert_int_equal(facts.copy_bytes, 400 * GPC_MIB);
}

/* TransformerEncoder copies the layer that it is given. */
TEST(layers_that_torch_copies_are_no_copy_of_the_model)
{
	const struct gpc_frame cloned[] = { python("deepcopy", "/usr/lib/python3.12/copy.py", true),
		python("_get_clones",
			"/v/lib/python3.12/site-packages/torch/nn/modules/transformer.py", true),
		python("<module>", "/home/me/train.py", false) };
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_torch_texts texts;

	set(2, cloned, 3);
	hold(2, 400, 12, 12);
	gpc_torch_facts(&evidence, &oom, &facts, &texts);
	assert_null(facts.copy_place);
}
