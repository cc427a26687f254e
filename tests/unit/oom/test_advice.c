/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "oom/advice.h"
#include "scene.h"

static void describe_by_number(void *self, uint32_t stack, char *buf, size_t size)
{
	(void)self;
	snprintf(buf, size, "model.py:%u", stack);
}

static void describe_nothing(void *self, uint32_t stack, char *buf, size_t size)
{
	(void)self;
	(void)stack;
	(void)buf;
	(void)size;
}

/* Stack 6 is a context's. */
static bool can_free(void *self, uint32_t stack)
{
	(void)self;
	return stack != 6;
}

static const struct gpc_describer by_number = { .describe = describe_by_number,
	.can_free = can_free };
static const struct gpc_describer silent = { .describe = describe_nothing };

static char advice[1024];

/* Finds the verdict, which has to be `verdict`, and writes the advice. */
static unsigned advise(struct scene *s, enum gpucache_verdict verdict)
{
	struct gpc_text text = gpc_text_init(advice, sizeof advice);

	gpc_verdict_find(&s->oom, &s->facts);
	assert_int_equal(s->oom.verdict, verdict);
	return gpc_advice_write(&s->oom, &s->facts, &by_number, &text);
}

static void an_exhausted_gpu_is_told_who_holds_most_and_how_much_must_go(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), 1);
	assert_string_equal(advice, "free at least 4.00 GiB\n");

	s.oom.n_holders = 1;
	s.oom.holders[0] = (struct gpucache_holder){ .stack = 5, .bytes = 50 * GPC_GIB };
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	assert_string_equal(advice,
		"free at least 4.00 GiB; 8 % of the 50.00 GiB held by model.py:5 would do\n");

	s.oom.holders[0].bytes = 2 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	assert_string_equal(advice, "free at least 4.00 GiB; 2.00 GiB is held by model.py:5\n");

	/* What nobody can free is not advised. */
	s.oom.n_holders = 2;
	s.oom.holders[1] = s.oom.holders[0];
	s.oom.holders[0] = (struct gpucache_holder){ .stack = 6, .bytes = 50 * GPC_GIB };
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	assert_string_equal(advice, "free at least 4.00 GiB; 2.00 GiB is held by model.py:5\n");
	s.oom.n_holders = 1;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	assert_string_equal(advice, "free at least 4.00 GiB\n");
}

static void describe_alike(void *self, uint32_t stack, char *buf, size_t size)
{
	(void)self;
	snprintf(buf, size, "model.py:%u", stack < 7 ? 4 : stack);
}

static void holders_that_read_the_same_are_named_once(void **state)
{
	static const struct gpc_describer alike = { .describe = describe_alike };
	struct gpc_text text = gpc_text_init(advice, sizeof advice);
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.n_holders = 3;
	s.oom.holders[0] = (struct gpucache_holder){ .stack = 5, .bytes = 30 * GPC_GIB };
	s.oom.holders[1] = (struct gpucache_holder){ .stack = 7, .bytes = 20 * GPC_GIB };
	s.oom.holders[2] = (struct gpucache_holder){ .stack = 6, .bytes = 10 * GPC_GIB };
	gpc_verdict_find(&s.oom, &s.facts);
	gpc_advice_write(&s.oom, &s.facts, &alike, &text);
	assert_string_equal(advice,
		"free at least 4.00 GiB; 10 % of the 40.00 GiB held by model.py:4 would do\n");
}

static void make_growth(struct scene *s)
{
	s->oom.growth_bytes = s->facts.growth_total = s->facts.growth_held = 4 * GPC_GIB;
	s->oom.growth_stack = 9;
	s->facts.growth_held_blocks = 300;
	s->oom.stack = s->oom.growth_stack;
}

static void a_growing_site_is_named(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	make_growth(&s);
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 2);
	assert_non_null(strstr(
		advice, "does model.py:9 keep what it no longer needs? it grew by 4.00 GiB\n"));
	s.facts.is_renewed = true;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 2);
	assert_non_null(
		strstr(advice, "bound the size of what model.py:9 makes: it grew by 4.00 GiB\n"));
	s.facts.is_renewed = false;
	/* What is not growth is not named as if it were. */
	s.facts.growth_held_blocks = 1;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_EXHAUSTED), 1);
}

static void no_setting_is_advised_for_an_impossible_request(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.rounded = s.oom.requested = 243 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_IMPOSSIBLE), 1);
	assert_string_equal(
		advice, "no setting can help: check how the size is computed, at model.py:7\n");
}

static struct scene scene_of_a_limit(void)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 80 * GPC_GIB - 1;
	s.oom.balance.device_free = 14 * GPC_GIB;
	s.oom.limit = 85 * GPC_GIB;
	return s;
}

static void a_limit_is_raised_to_what_would_have_been_enough(void **state)
{
	struct scene s = scene_of_a_limit();

	(void)state;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_LIMIT), 2);
	assert_int_equal(
		strncmp(advice, "in GPUCACHE_CONF raise limit to limit:90132MiB\n", 47), 0);

	s.facts.options_set = GPC_SET_FRACTION;
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	assert_non_null(strstr(advice, "per_process_memory_fraction:0.88\n"));
}

static void a_limit_of_pytorchs_own_is_raised_by_pytorchs_own_call(void **state)
{
	struct scene s = scene_of_a_limit();

	(void)state;
	s.oom.kind = GPUCACHE_KIND_TENSOR;
	s.oom.limit = 0;
	s.oom.requested = s.oom.rounded = 11 * GPC_MIB;
	s.oom.torch.reserved = 50 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_LIMIT), 2);
	assert_non_null(strstr(advice, "torch.cuda.set_per_process_memory_fraction(0.5"));
	assert_null(strstr(advice, "GPUCACHE_CONF"));
	/* The GPU has no room either. */
	s.oom.balance.device_free = GPC_MIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_LIMIT), 1);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_POSSIBLE);
	assert_null(strstr(advice, "fraction"));
}

static struct scene scene_of_holes(void)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = GPC_GIB,
		.allocated = 56 * GPC_GIB,
		.reserved = 64 * GPC_GIB,
	};
	return s;
}

static void holes_of_pytorchs_cache_are_joined_by_pytorchs_option(void **state)
{
	struct scene s = scene_of_holes();

	(void)state;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_FRAGMENTED), 1);
	assert_string_equal(
		advice, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  joins the holes\n");
	/* One hole may be all that there is. */
	s.oom.torch.requested++;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	/* Fewer bytes than an eighth of the cache. */
	s = scene_of_holes();
	s.oom.torch.requested = GPC_MIB;
	s.oom.torch.allocated++;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	/* They would have been full soon. */
	s = scene_of_holes();
	s.oom.growth_bytes = 8 * GPC_GIB + 1;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	/* It is joined already: its memory is physical memory. */
	s = scene_of_holes();
	s.oom.balance.requested = 64 * GPC_GIB - 1;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	/* The request was another's, or PyTorch went on. */
	s = scene_of_holes();
	s.oom.torch.requested = 0;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	/* Joined, they would not have been enough. */
	s = scene_of_holes();
	s.oom.balance.device_free = 0;
	(void)advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
}

static void a_limit_is_not_raised_where_the_device_has_no_room(void **state)
{
	struct scene s = scene_of_a_limit();

	(void)state;
	s.oom.balance.device_free = GPUCACHE_UNKNOWN;
	advise(&s, GPUCACHE_VERDICT_LIMIT);
	assert_null(strstr(advice, "raise"));
}

static struct scene scene_of_fragmentation(void)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 81 * GPC_GIB;
	s.oom.balance.cached = 9 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	return s;
}

/* The figures of one moment do not show which option would help: gpumem-report replays the run. */
static void no_option_is_advised_against_fragmentation(void **state)
{
	struct scene s = scene_of_fragmentation();

	(void)state;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_FRAGMENTED), 1);
	assert_non_null(strstr(advice, "gpumem-report replays this run"));
	assert_null(strstr(advice, "GPUCACHE_CONF"));
	s.facts.caching = false;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_FRAGMENTED), 0);
	assert_string_equal(advice, "");
}

static void the_line_to_paste_keeps_the_settings_there_are(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 83 * GPC_GIB;
	s.oom.balance.other_processes = 10 * GPC_GIB;
	s.facts.conf = "limit:99GiB,record:on";
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_non_null(strstr(advice, "GPUCACHE_CONF=limit:99GiB,record:on,oom_wait_ms:30000  "));
	s.facts.conf = "output:/tmp/a $(b)";
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_non_null(strstr(advice, "add ,oom_wait_ms:30000 to GPUCACHE_CONF  "));
	assert_null(strstr(advice, "$"));
}

static void pending_memory_is_met_by_waiting(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 86 * GPC_GIB;
	s.oom.balance.pending = 4 * GPC_GIB + 64 * GPC_MIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_PENDING), 1);
	assert_string_equal(advice, "call cudaDeviceSynchronize() before this allocation\n");
	s.facts.capturing = true;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_PENDING), 1);
	assert_string_equal(advice, "make this allocation before the stream capture begins\n");
}

static void rounding_names_the_option_only_where_it_refused_the_request_itself(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.rounding = 9 * GPC_GIB;
	s.facts.options_set = GPC_SET_ROUNDUP;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	assert_null(strstr(advice, "GPUCACHE_CONF"));
	s.oom.requested = 4 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	assert_int_equal(
		strncmp(advice, "take roundup_power2_divisions out of GPUCACHE_CONF\n", 51), 0);
	s.facts.options_set = 0;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	assert_null(strstr(advice, "roundup"));
}

static void without_a_helpful_setting_the_advice_says_what_to_do(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 10 * GPC_GIB;
	s.facts.n_contexts = 26;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_CONTEXTS), 1);
	assert_non_null(strstr(advice, "one context per GPU"));
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 0;
	s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 10 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_MANAGED), 1);
	assert_non_null(strstr(advice, "cudaMemPrefetchAsync"));
	s.oom.kind = GPUCACHE_KIND_HOST;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_PINNED), 1);
	assert_non_null(strstr(advice, "ulimit -l"));
}

static void neighbours_are_named_where_they_can_be_seen(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 83 * GPC_GIB;
	s.oom.balance.other_processes = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_non_null(strstr(advice, "nvidia-smi on the host names the other processes\n"));
	s.oom.n_neighbours = 1;
	s.oom.neighbours[0] = (struct gpucache_neighbour){ .pid = 99, .bytes = 9 * GPC_GIB };
	assert_non_null(strstr(advice, "GPUCACHE_CONF=oom_wait_ms:30000  waits"));
	s.facts.options_set = GPC_SET_OOM_WAIT;
	memset(s.oom.neighbours[0].name, 'x', sizeof s.oom.neighbours[0].name);
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_non_null(strstr(advice, "pid 99 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx holds 9.00 GiB: "));
	assert_null(strstr(advice, "oom_wait_ms"));
	s.oom.neighbours[0] = (struct gpucache_neighbour){
		.pid = 99, .bytes = 9 * GPC_GIB, .own_age_s = 7200, .name = "train"
	};
	advise(&s, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_non_null(strstr(advice,
		"pid 99 train, your own since 120 min, holds 9.00 GiB: an earlier job? `kill 99`"));
}

static void lazy_loading_is_advised_only_where_it_is_off(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.process_outside = 16 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_UNTRACKED);
	assert_null(strstr(advice, "LAZY"));
	s.facts.eager_modules = true;
	advise(&s, GPUCACHE_VERDICT_UNTRACKED);
	assert_non_null(strstr(advice, "CUDA_MODULE_LOADING=LAZY"));
}

static void a_spike_a_refusal_and_a_wrong_pool_have_advice(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.facts.usual_live = 10 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_SPIKE);
	assert_string_equal(
		advice, "make this step smaller by 4.00 GiB (batch or sequence length)\n");

	s = scene_of_an_exhausted_gpu();
	s.oom.balance.device_free = 9 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_DRIVER), 1);

	s = scene_of_fragmentation();
	s.facts.largest_other_pool = 8 * GPC_GIB;
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_WRONG_POOL), 1);
	assert_non_null(strstr(advice, "replays this run"));
}

static void a_site_without_a_description_has_a_number(void **state)
{
	char buf[32];

	(void)state;
	gpc_site_describe(&by_number, 3, buf, sizeof buf);
	assert_string_equal(buf, "model.py:3");
	gpc_site_describe(&silent, 3, buf, sizeof buf);
	assert_string_equal(buf, "stack 3");
	gpc_site_describe(NULL, 3, buf, sizeof buf);
	assert_string_equal(buf, "stack 3");
	gpc_site_describe(&by_number, 0, buf, sizeof buf);
	assert_string_equal(buf, "no stack");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exhausted_gpu_is_told_who_holds_most_and_how_much_must_go),
		cmocka_unit_test(holders_that_read_the_same_are_named_once),
		cmocka_unit_test(a_growing_site_is_named),
		cmocka_unit_test(no_setting_is_advised_for_an_impossible_request),
		cmocka_unit_test(a_limit_is_raised_to_what_would_have_been_enough),
		cmocka_unit_test(a_limit_of_pytorchs_own_is_raised_by_pytorchs_own_call),
		cmocka_unit_test(holes_of_pytorchs_cache_are_joined_by_pytorchs_option),
		cmocka_unit_test(a_limit_is_not_raised_where_the_device_has_no_room),
		cmocka_unit_test(no_option_is_advised_against_fragmentation),
		cmocka_unit_test(the_line_to_paste_keeps_the_settings_there_are),
		cmocka_unit_test(pending_memory_is_met_by_waiting),
		cmocka_unit_test(
			rounding_names_the_option_only_where_it_refused_the_request_itself),
		cmocka_unit_test(without_a_helpful_setting_the_advice_says_what_to_do),
		cmocka_unit_test(neighbours_are_named_where_they_can_be_seen),
		cmocka_unit_test(lazy_loading_is_advised_only_where_it_is_off),
		cmocka_unit_test(a_spike_a_refusal_and_a_wrong_pool_have_advice),
		cmocka_unit_test(a_site_without_a_description_has_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
