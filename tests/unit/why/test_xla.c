/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where XLA's own pool was full: the cause, what was short, and what to try. */
#include "tests/unit/unit.h"

#include "tests/unit/why/scene.h"

static char said[4096];

static void add_number(void *self, uint32_t stack, struct gpc_text *text)
{
	gpc_text_add(text, "model.py:%u", stack);
}

static const struct gpc_site_names by_number = { .add = add_number };

/* A pool of 75 GiB on a GPU of 100; all in GiB. */
struct row {
	uint64_t asked, in_arrays, in_use, beside; /* beside: free on the GPU */
	uint64_t temporaries, arguments, outputs;  /* all 0: no program */
	uint64_t growth;
	enum gpucache_verdict cause;
	const char *is_said, *is_not;
};

static const struct row rows[] = {
	/* Outputs beside the arguments: what donation saves. */
	{ 1, 0, 30, 17, 0, 42, 42, 0, GPUCACHE_VERDICT_LIMIT,
		"by 9.00 GiB: 1.00 GiB asked for, by model.py:7, to run jit_step, 17.00 GiB free "
		"on "
		"the GPU, 75.00 GiB of XLA's pool in no array, 30.00 GiB of it in use by XLA's own "
		"count, 42.00 GiB of arguments, 42.00 GiB of outputs",
		", 0 B" },
	{ 110, 1, 1, 17, 110, 1, 0, 0, GPUCACHE_VERDICT_IMPOSSIBLE,
		"own count, 110.00 GiB needed for a time, 1.00 GiB of arguments", ", 0 B" },
	{ 1, 0, 30, 17, 0, 42, 42, 0, GPUCACHE_VERDICT_LIMIT,
		"donate_argnums, if jit_step replaces its arguments: its outputs then take their "
		"memory, "
		"42.00 GiB [look]\nXLA_PYTHON_CLIENT_MEM_FRACTION=0.84",
		"rounded to" },
	{ 60, 20, 20, 17, 60, 10, 1, 0, GPUCACHE_VERDICT_LIMIT,
		"or a smaller batch, jax.checkpoint, or parts", "donate_argnums" },
	{ 60, 30, 30, 17, 60, 10, 1, 0, GPUCACHE_VERDICT_LIMIT, "or hold at least 16.00 GiB less",
		"donate_argnums" },
	/* It fits nowhere. */
	{ 110, 1, 1, 17, 110, 1, 1, 0, GPUCACHE_VERDICT_IMPOSSIBLE,
		"jit_step needs 111.00 GiB beside its arguments", "no setting can help" },
	{ 110, 1, 1, 17, 0, 1, 110, 0, GPUCACHE_VERDICT_IMPOSSIBLE,
		"make it in parts (jax.lax.map with batch_size for vmap), or within jax.jit",
		"jax.checkpoint" },
	{ 95, 1, 1, 17, 0, 95, 95, 0, GPUCACHE_VERDICT_EXHAUSTED, "or within jax.jit",
		"donate_argnums" },
	/* An array from the host: little is held, so to hold less is no way. */
	{ 80, 1, 1, 17, 0, 0, 0, 0, GPUCACHE_VERDICT_LIMIT,
		"or keep it on the host (NumPy), and copy a batch at a time (jax.device_put), at "
		"model.py:7",
		"hold at least 6.00 GiB less" },
	/* What grows fills a larger pool, too. */
	{ 1, 75, 75, 17, 0, 1, 1, 60, GPUCACHE_VERDICT_GROWTH,
		"something still refers to what model.py:9 makes (a list, a dict, a cache, a "
		"closure)",
		"limit (certain)" },
	/* In pieces: it had room for as much. */
	{ 10, 40, 40, 5, 10, 1, 1, 0, GPUCACHE_VERDICT_LIMIT, "by 11.00 GiB: 10.00 GiB asked for",
		"MEM_FRACTION" },
};

static void tell(const struct row *row)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_text text = gpc_text_init(said, sizeof said);
	const char *reach;

	s.oom.kind = GPUCACHE_KIND_TENSOR;
	s.oom.framework = GPUCACHE_FRAMEWORK_XLA;
	s.oom.requested = s.oom.rounded = row->asked * GPC_GIB;
	s.oom.torch = (struct gpucache_oom_torch){ .requested = row->asked * GPC_GIB,
		.allocated = row->in_arrays * GPC_GIB,
		.reserved = 75 * GPC_GIB };
	s.oom.balance.device_free = row->beside * GPC_GIB;
	s.oom.balance.requested = 0;
	s.oom.balance.direct = 75 * GPC_GIB;
	s.oom.program.pool_in_use = row->in_use * GPC_GIB;
	if (row->arguments) {
		memcpy(s.oom.program.name, "jit_step", 9);
		s.oom.program.temporaries = row->temporaries * GPC_GIB;
		s.oom.program.arguments = row->arguments * GPC_GIB;
		s.oom.program.outputs = row->outputs * GPC_GIB;
	}
	if (row->growth) {
		s.oom.growth_stack = 9;
		s.oom.growth_bytes = row->growth * GPC_GIB;
		s.oom.growth_held = s.oom.growth_total = row->growth * GPC_GIB;
		s.oom.growth_blocks = 600;
		s.oom.grows_how = GPUCACHE_GROWS_AGAIN;
		s.oom.n_free = 10000;
	}
	judge(&s);
	gpc_say_why(&text, &s.facts, &s.answer, &by_number);
	gpc_text_add(&text, "\n");
	gpc_say_short(&text, &s.facts, &by_number);
	gpc_text_add(&text, "\n");
	for (unsigned n = 0; gpc_say_try(&text, &s.facts, &s.answer, &by_number, n, &reach); n++)
		gpc_text_add(&text, " [%s]\n", reach);
	if (s.answer.cause != row->cause)
		fail_msg("%s", said);
}

TEST(a_failure_of_xlas_pool_is_told_by_what_its_program_needs)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		tell(&rows[i]);
		if (!strstr(said, rows[i].is_said) || strstr(said, rows[i].is_not))
			fail_msg("row %zu: %s", i, said);
	}
}

/* The pool is small because another process had most of the GPU when it was made. */
TEST(a_pool_beside_another_process_is_small)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.kind = GPUCACHE_KIND_TENSOR;
	s.oom.framework = GPUCACHE_FRAMEWORK_XLA;
	s.oom.requested = s.oom.rounded = 6 * GPC_GIB;
	s.oom.balance.requested = 0;
	s.oom.balance.direct = 17 * GPC_GIB;
	s.oom.balance.device_free = GPC_GIB / 4;
	s.oom.balance.other_processes = 75 * GPC_GIB;
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 6 * GPC_GIB, .allocated = 12 * GPC_GIB, .reserved = 17 * GPC_GIB
	};
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.balance.other_processes = 2 * GPC_GIB; /* too little to have mattered */
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_NEIGHBOUR);
}

/* XLA asks the driver for its own pool: no other library is beside it. */
TEST(xla_that_asks_for_more_is_not_another_library)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.framework = GPUCACHE_FRAMEWORK_XLA;
	s.oom.balance.requested = 20 * GPC_GIB;
	s.oom.balance.other_processes = 73 * GPC_GIB;
	s.oom.torch = (struct gpucache_oom_torch){ .allocated = GPC_GIB, .reserved = 20 * GPC_GIB };
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_NEIGHBOUR);
}
