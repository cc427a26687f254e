/* SPDX-License-Identifier: Apache-2.0 */
/* The advice for each cause. */
#include "tests/unit/unit.h"

#include "tests/unit/why/advice.h"

TEST(an_idle_gpu_is_named)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.idle_gpu = 4;
	s.oom.idle_free = 78 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), 2);
	says("part of it on GPU 3, where no other process holds memory: 78.00 GiB is free");
}

TEST(spilling_is_advised_where_it_would_have_served)
{
	struct scene s = scene_of_an_exhausted_gpu();
	unsigned without = advise(&s, GPUCACHE_VERDICT_EXHAUSTED);

	s.oom.host_room = s.facts.need;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), without + 1);
	says("spill:auto, which goes on, slower, with what does not fit in host memory: here 8.00 "
	     "GiB");
	s.oom.host_room--; /* the host had no room for it */
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), without);
	s.oom.host_room = 100 * GPC_GIB;
	s.oom.kind = GPUCACHE_KIND_PHYSICAL; /* cannot be managed */
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), without);
	s.oom.kind = GPUCACHE_KIND_DEVICE;
	s.oom.balance.other_processes = s.oom.balance.device_total / 16 + 1;
	judge(&s);
	say(&s);
	assert_null(strstr(advice, "spill:"));
	s = scene_of_an_exhausted_gpu();
	s.oom.host_room = 100 * GPC_GIB;
	s.oom.usual_live = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_SPIKE);
	says("spill:auto, which goes on");
}

TEST(an_exhausted_gpu_is_told_how_much_must_go_and_who_holds_most)
{
	struct scene s = scene_of_an_exhausted_gpu();

	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), 1);
	says("hold at least 4.00 GiB less (a smaller batch, a shorter type, an earlier free)");
	says("[once]");
	s.facts.top_site = 5;
	s.facts.top_held = 50 * GPC_GIB;
	say(&s);
	says("model.py:5 holds most, 50.00 GiB");
	s.facts.enough = 6 * GPC_GIB; /* a replay says that more must go */
	say(&s);
	says("hold 6.00 GiB less");
	says("replayed with it, this request succeeds [served]");
}

/* What follows the first request decides, not how much this one misses. */
TEST(who_asks_for_more_is_told_what_will_be_needed)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch.requested = s.oom.requested;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	s.facts.top_site = s.oom.stack + 1;
	s.facts.top_held = 70 * GPC_GIB;
	say(&s);
	says("hold at least 4.00 GiB less");
	s.facts.top_site = s.oom.stack;
	s.facts.is_top_asking = GPC_YES;
	say(&s);
	says("fewer or smaller blocks of model.py:7: it holds most, 70.00 GiB, and asked for 8.00 "
	     "GiB more");
	s.facts.weights = 30 * GPC_GIB;
	s.facts.gradients = 12 * GPC_GIB;
	s.facts.asked_purpose = GPC_PURPOSE_GRADIENTS;
	say_anew(&s);
	says("gradients need as much as the weights, 30.00 GiB, and have 12.00 GiB so far");
	s.facts.inputs_place = "main data.py:2";
	s.facts.inputs = 36 * GPC_GIB;
	s.facts.by_purpose = 70 * GPC_GIB;
	say_anew(&s);
	says("keep on the host what main data.py:2 holds, 36.00 GiB");
	s.facts.torch_asked = 13 * GPC_GIB;
	s.facts.weights = 13 * GPC_GIB - 1; /* no weight has so large a gradient */
	say_anew(&s);
	s.facts.activations_place = "Net.forward model.py:5";
	s.facts.activations = 20 * GPC_GIB;
	s.facts.by_purpose = 70 * GPC_GIB;
	say_anew(&s);
	says("a shorter input for Net.forward model.py:5: activations hold 20.00 GiB, and the "
	     "backward pass asks for 13.00 GiB at once");
	s.facts.copy_place = "Trainer.__init__ train.py:6";
	s.facts.copy_bytes = 13 * GPC_GIB;
	say(&s);
	says("the copy of the weights that Trainer.__init__ train.py:6 made, 13.00 GiB");
}

TEST(settings_of_the_library_that_runs_the_model_are_named)
{
	struct scene s = scene_of_an_exhausted_gpu();
	unsigned without = advise(&s, GPUCACHE_VERDICT_EXHAUSTED);

	s.facts.trainer = "vLLM";
	s.facts.trainer_less = "max_model_len";
	s.answer = gpc_why(&s.facts);
	assert_int_equal(say(&s), without + 1);
	says("with vLLM: max_model_len [look]");
	s.facts.trainer_half = "bf16=True";
	say(&s);
	says("with vLLM: max_model_len, bf16=True [look]");
	s.facts.is_phase = GPC_YES;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(say(&s), without);
	says("with vLLM: max_model_len; were nothing else held, 94.00 GiB would be free");
	s.oom.requested = s.oom.rounded = 101 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_IMPOSSIBLE);
	says("no setting can help");
	s.facts.trainer = "vLLM";
	s.facts.trainer_less = "max_model_len";
	say(&s);
	says("with vLLM: max_model_len; else check how the size is computed, at model.py:7");
	assert_null(strstr(advice, "no setting"));
}

/* Not "shard it", where it is sharded. */
TEST(what_is_sharded_is_told_to_be_offloaded)
{
	static const enum gpc_purpose states[] = { GPC_PURPOSE_OPTIMIZER, GPC_PURPOSE_WEIGHTS,
		GPC_PURPOSE_OTHER };

	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
		s.facts.sharder = "FSDP";
		s.facts.sharder_less = "CPUOffloadPolicy";
		s.facts.asked_purpose = states[i];
		s.facts.by_purpose = 70 * GPC_GIB;
		s.facts.weights = 20 * GPC_GIB;
		s.facts.gradients = 5 * GPC_GIB;
		s.facts.optimizer = 10 * GPC_GIB;
		s.answer = gpc_why(&s.facts);
		say(&s);
		says("with FSDP: CPUOffloadPolicy; weights, gradients and optimizer state hold "
		     "35.00 GiB");
		assert_null(strstr(advice, "sharded"));
		s.facts.sharder = NULL;
		say(&s);
		assert_null(strstr(advice, "FSDP:"));
	}
}

/* To offload weights would not help an activation that is large by itself. */
TEST(a_large_activation_is_not_told_to_be_offloaded)
{
	struct scene s = scene_of_an_exhausted_gpu();

	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	s.facts.sharder = "FSDP";
	s.facts.sharder_less = "CPUOffloadPolicy";
	s.facts.asked_purpose = GPC_PURPOSE_ACTIVATIONS;
	s.facts.torch_asked = 20 * GPC_GIB;
	s.facts.by_purpose = 70 * GPC_GIB;
	s.facts.weights = 40 * GPC_GIB;
	s.facts.gradients = s.facts.optimizer = 0;
	say_anew(&s);
	says("a smaller batch or a shorter input");
	assert_null(strstr(advice, "FSDP"));
}

TEST(a_request_that_never_fits_is_not_told_to_free)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.requested = s.oom.rounded = 97 * GPC_GIB;
	s.oom.balance.device_free = 5 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	says("ask for less: were nothing else held, 95.00 GiB would be free");
}

TEST(padding_of_rows_is_rounding)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.row_padding = 12 * GPC_GIB; /* less than an eighth of the GPU */
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.row_padding = 60 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	says("longer rows, or cudaMalloc without a pitch");
	grow(&s);
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
}

TEST(handles_of_the_least_size_may_hold_smaller_blocks)
{
	struct scene s = scene_of_an_exhausted_gpu();

	grow(&s);
	s.oom.requested = 2 * GPC_MIB;
	s.oom.kind = GPUCACHE_KIND_PHYSICAL;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 2);
	says("several blocks into one handle, if yours are smaller: cuMemCreate gives 2.00 MiB at "
	     "least, and each of the 300 handles");
	s.oom.requested = 4 * GPC_MIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 1);
}

TEST(growth_is_told_by_what_it_is)
{
	struct scene s = scene_of_an_exhausted_gpu();

	grow(&s);
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 1);
	says("free what model.py:9 no longer needs: it grew by 4.00 GiB");
	says("or make less, if all of it is needed");
	s.oom.grows_how = GPUCACHE_GROWS_RENEWED;
	advise(&s, GPUCACHE_VERDICT_GROWTH);
	says("free what model.py:9"); /* so many blocks are kept, and not replaced */
	s.oom.growth_blocks = 63;
	advise(&s, GPUCACHE_VERDICT_GROWTH);
	says("bound the size of what model.py:9 makes");
	s.facts.is_renewed = GPC_NO;
	s.facts.loop_place = "train loop.py:3";
	s.facts.growth_purpose = GPC_PURPOSE_WEIGHTS;
	say_anew(&s);
	says("model after model stays, loaded in train loop.py:3");
	s.facts.growth_purpose = GPC_PURPOSE_OPTIMIZER;
	say_anew(&s);
	says("optimizer after optimizer stays");
	s.facts.growth_purpose = GPC_PURPOSE_ACTIVATIONS;
	say_anew(&s);
	says("keep loss.item() or output.detach().cpu()");
	s.facts.had_backward = GPC_NO;
	say_anew(&s);
	says("call backward() for each");
	s.facts.growth_total = 2 * s.facts.growth_held + 2;
	say_anew(&s);
	says("some passes of train loop.py:3 stay, most are freed: an exception");
	s.facts.growth_total--;
	say_anew(&s);
	says("call backward() for each");
	s.facts.evaluation_place = "evaluate loop.py:9";
	say(&s);
	says("`with torch.no_grad():` in evaluate loop.py:9");
	s.facts.is_result_alone = GPC_YES;
	say_anew(&s);
	says("what each pass makes stays on the GPU, in train loop.py:3");
	says("a list, sum, cache, hook");
	s.facts.maker_place = "Attention.forward model.py:6";
	say(&s);
	says("what Attention.forward model.py:6 makes stays on the GPU after each pass, in train "
	     "loop.py:3");
	/* The graph of each pass is gone, and what stays are its inputs. */
	s.facts.had_backward = GPC_YES;
	s.facts.inputs = 30 * GPC_GIB;
	s.facts.inputs_place = "main loop.py:2";
	s.facts.activations = 4 * GPC_GIB;
	say_anew(&s);
	says("something still refers to the inputs that main loop.py:2 makes");
	s.facts.activations = 5 * GPC_GIB;
	say_anew(&s);
	says("what Attention.forward model.py:6 makes stays");
}

TEST(a_checkpoint_is_not_put_around_what_has_one)
{
	struct scene s = scene_of_an_exhausted_gpu();

	judge(&s);
	s.facts.activations_place = "Net.forward model.py:10";
	s.facts.activations = 60 * GPC_GIB;
	s.facts.by_purpose = 80 * GPC_GIB;
	say_anew(&s);
	says("torch.utils.checkpoint around each block in Net.forward model.py:10, not around all");
	s.facts.is_checkpointed = GPC_YES;
	say_anew(&s);
	says("checkpoints around smaller parts of Net.forward model.py:10");
}

/* A pass makes a gradient for each weight, and not twice as much. */
TEST(gradients_that_stay_are_told_with_the_line_of_the_backward_pass)
{
	struct scene s = scene_of_an_exhausted_gpu();

	grow(&s);
	advise(&s, GPUCACHE_VERDICT_GROWTH);
	s.facts.weights = GPC_GIB;
	s.facts.gradients = 2 * GPC_GIB;
	say_anew(&s);
	says("free what model.py:9 no longer needs: it grew by 4.00 GiB");
	s.facts.gradients += 2;
	s.facts.backward_place = "train loop.py:7";
	say_anew(&s);
	says("backward(create_graph=True), a hook, or a state");
	says("at train loop.py:7");
}

TEST(an_optimizers_first_step_is_not_growth)
{
	struct scene s = scene_of_an_exhausted_gpu();

	grow(&s);
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	s.facts.growth_purpose = s.facts.asked_purpose = GPC_PURPOSE_OPTIMIZER;
	s.facts.optimizer_less = "SGD without momentum has none";
	s.facts.weights = 40 * GPC_GIB;
	s.facts.optimizer = 30 * GPC_GIB;
	s.facts.gradients = 39 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	say(&s);
	says("less state (SGD without momentum has none)");
	says("so far it has 30.00 GiB, for weights whose gradients have 39.00 GiB");
	s.facts.by_purpose = 110 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	say(&s);
	says("it has 30.00 GiB so far, and up to 87.00 GiB to come; with weights and gradients "
	     "109.00 GiB is there");
	s.facts.asks_foreach = GPC_YES;
	assert_int_equal(say(&s), 1);
	says("foreach=False for the optimizer");
	s.facts.weights = 2 * GPC_GIB; /* state of many optimizers */
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
}

static void limit(struct scene *s)
{
	s->oom.balance.requested = 80 * GPC_GIB - 1;
	s->oom.balance.device_free = 14 * GPC_GIB;
	s->oom.limit = 85 * GPC_GIB;
}

TEST(a_limit_is_raised_to_what_would_have_been_enough)
{
	struct scene s = scene_of_an_exhausted_gpu();

	limit(&s);
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	says("limit:90132MiB in GPUCACHE_CONF: enough for this request"); /* a segment more */
	s.oom.setup |= GPUCACHE_OOM_FRACTION;
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	says("per_process_memory_fraction:0.8802 in GPUCACHE_CONF");
	s.oom.balance.device_free = GPUCACHE_UNKNOWN; /* whether it had room is unknown */
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_LIMIT);
	say(&s);
	assert_null(strstr(advice, "GPUCACHE_CONF"));
}

TEST(a_limit_of_pytorchs_own_is_raised_by_pytorchs_own_call)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.kind = GPUCACHE_KIND_TENSOR;
	s.oom.balance.device_free = 10 * GPC_GIB;
	s.oom.requested = s.oom.rounded = 11 * GPC_MIB;
	s.oom.torch.reserved = 50 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	says("raise or remove the limit: 10.00 GiB is free on the GPU, and this request alone "
	     "needs "
	     "torch.cuda.set_per_process_memory_fraction(0.500");
	assert_null(strstr(advice, "GPUCACHE_CONF"));
}

TEST(the_settings_that_a_replay_found_are_advised_with_those_that_are_set)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 81 * GPC_GIB;
	s.oom.balance.cached = 9 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_FRAGMENTED);
	says("gpumem-report replays this run");
	s.facts.is_replayed = s.facts.is_whole = s.facts.is_remedy_pages = GPC_YES;
	s.facts.remedy = "vmm:on";
	s.facts.remedy_free = 2 * GPC_GIB;
	s.facts.remedy2 = "max_split_size_mb:64";
	s.facts.remedy2_free = GPC_GIB;
	s.facts.conf = "limit:99GiB,";
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	assert_int_equal(say(&s), 2);
	says("GPUCACHE_CONF=limit:99GiB,vmm:on, which leaves 2.00 GiB free (not for memory that "
	     "CUDA IPC");
	says("or GPUCACHE_CONF=limit:99GiB,max_split_size_mb:64, which leaves 1.00 GiB free");
	s.facts.remedy = s.facts.remedy2 = NULL;
	s.answer = gpc_why(&s.facts);
	s.answer.cause = GPUCACHE_VERDICT_FRAGMENTED;
	say(&s);
	says("no setting makes room: replayed with each, the request fails, too");
	s.facts.top_site = 5;
	s.facts.top_held = 50 * GPC_GIB;
	say(&s);
	says("free the blocks that lie between the free pieces, or allocate them before those that "
	     "are freed: model.py:5 holds most, 50.00 GiB");
}

TEST(pages_that_small_blocks_pin_are_computed)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.setup = 0;
	s.oom.balance.requested = 0;
	s.oom.balance.direct = 40 * GPC_GIB;
	s.oom.balance.process_outside = 52 * GPC_GIB;
	s.oom.page_waste = 50 * GPC_GIB;
	s.oom.page_blocks = 725;
	advise(&s, GPUCACHE_VERDICT_FRAGMENTED);
	says("cut small blocks that stay from one large block");
}

TEST(pending_memory_is_met_by_waiting)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 86 * GPC_GIB;
	s.oom.balance.pending = 4 * GPC_GIB + 64 * GPC_MIB;
	advise(&s, GPUCACHE_VERDICT_PENDING);
	says("call cudaDeviceSynchronize() before this allocation");
	s.oom.setup |= GPUCACHE_OOM_CAPTURING;
	advise(&s, GPUCACHE_VERDICT_PENDING);
	says("make this allocation before the stream capture begins");
}

TEST(rounding_names_the_option_only_where_it_is_set)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.rounding = 9 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	says("sizes that are multiples of 2 MiB");
	s.oom.setup |= GPUCACHE_OOM_ROUNDUP;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	says("take roundup_power2_divisions out of GPUCACHE_CONF");
}

TEST(neighbours_are_named_if_they_can_be_seen)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 83 * GPC_GIB;
	s.oom.balance.other_processes = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	says("nvidia-smi on the host names the other processes");
	says("GPUCACHE_CONF=oom_wait_ms:30000 waits");
	s.oom.n_neighbours = 1;
	s.oom.setup |= GPUCACHE_OOM_WAIT;
	s.oom.neighbours[0] =
		(struct gpucache_neighbour){ .pid = 99, .bytes = 9 * GPC_GIB, .name = "python" };
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	says("pid 99 python holds 9.00 GiB: wait for it");
	assert_null(strstr(advice, "oom_wait_ms"));
	s.oom.neighbours[0].own_age_s = 7200;
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	says("pid 99 python, your own since 2 h, holds 9.00 GiB: an earlier job? `kill 99` ends "
	     "it");
}

TEST(other_causes_say_what_to_do)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 10 * GPC_GIB;
	s.oom.n_contexts = 26;
	advise(&s, GPUCACHE_VERDICT_CONTEXTS);
	says("one context per GPU");
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 0;
	s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_MANAGED);
	says("cudaMemPrefetchAsync");
	s.oom.kind = GPUCACHE_KIND_HOST;
	advise(&s, GPUCACHE_VERDICT_PINNED);
	says("ulimit -l");
	s = scene_of_an_exhausted_gpu();
	s.oom.balance.process_outside = 16 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_UNTRACKED);
	assert_null(strstr(advice, "LAZY"));
	s.oom.setup |= GPUCACHE_OOM_EAGER;
	advise(&s, GPUCACHE_VERDICT_UNTRACKED);
	says("CUDA_MODULE_LOADING=LAZY");
	s.oom.balance.requested = 75 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 15 * GPC_GIB;
	s.oom.n_contexts = 1;
	advise(&s, GPUCACHE_VERDICT_UNTRACKED);
	says("a smaller cudaLimitMallocHeapSize");
	s = scene_of_an_exhausted_gpu();
	s.oom.growth_stack = s.oom.stack;
	s.oom.growth_blocks = 8;
	s.oom.growth_held = s.oom.growth_total = s.oom.growth_bytes = 45 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	says("free what model.py:7 no longer needs, if some of its blocks are left over");
	s = scene_of_an_exhausted_gpu();
	s.oom.usual_live = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_SPIKE);
	says("what model.py:7 makes, in parts), nearer to a usual one: this request is 4.00 GiB "
	     "too "
	     "much, and the rest of the step is yet to come [look]");
	s.facts.is_joined = GPC_YES;
	s.facts.torch_asked = 8 * GPC_GIB;
	say(&s);
	says("write each part into one tensor made before them (torch.empty), or move it to the "
	     "host");
	s.facts.is_joined = GPC_NO;
	s.oom.balance.device_free = 9 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_DRIVER);
	says("ulimit -v");
	s.oom.kind = GPUCACHE_KIND_ASYNC;
	s.oom.kind_bytes[GPUCACHE_KIND_ASYNC] = 2 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_DRIVER);
	says("maxSize of CUmemPoolProps): 2.00 GiB is live in pools");
	s.oom.pool_max = 10 * GPC_GIB;
	s.oom.pool_used = 2 * GPC_GIB + 1;
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	says("a larger maxSize of that pool");
	assert_int_equal(s.facts.short_by, 1);
	s.oom.pool_used--;
	advise(&s, GPUCACHE_VERDICT_DRIVER);
	s.oom.pool_max = 0;
	s.oom.kind = GPUCACHE_KIND_DEVICE;
	s.oom.requested = s.oom.rounded = 243 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_IMPOSSIBLE);
	says("no setting can help: check how the size is computed, at model.py:7");
	s.oom.requested = s.oom.rounded = UINT64_MAX - 4096;
	advise(&s, GPUCACHE_VERDICT_IMPOSSIBLE);
	says("look at how the size is computed, at model.py:7: it is negative");
}
