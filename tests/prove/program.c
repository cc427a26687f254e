/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: generated at random, shrunk, printed. */
#include <string.h>

#include "tests/prove/prove.h"

#define MS UINT64_C(1000000)

/* The weight of each step.  Two of three are memory and work, which all other steps only disturb. */
static const struct {
	const char *name;
	uint32_t weight;
} ops[PROVE_OPS] = {
	[PROVE_ALLOC] = { "alloc", 300 },
	[PROVE_FREE] = { "free", 230 },
	[PROVE_LAUNCH] = { "launch", 220 },
	[PROVE_TIME] = { "time goes by", 60 },
	[PROVE_CONTINUE] = { "goes on in its call", 70 },
	[PROVE_STREAM_CREATE] = { "create stream", 20 },
	[PROVE_STREAM_DESTROY] = { "destroy stream", 4 },
	[PROVE_STREAM_SYNC] = { "synchronise stream", 6 },
	[PROVE_EVENT_RECORD] = { "record event", 14 },
	[PROVE_EVENT_WAIT] = { "wait for event", 14 },
	[PROVE_EVENT_SYNC] = { "synchronise event", 4 },
	[PROVE_SYNC] = { "synchronise context", 8 },
	[PROVE_PER_THREAD_USE] = { "first use of a per-thread stream", 4 },
	[PROVE_PEER] = { "enable peer", 2 },
	[PROVE_EXPORT] = { "export", 4 },
	[PROVE_OVERLAP_USE] = { "first kernel that may overlap another", 4 },
	[PROVE_LAUNCH_EARLY] = { "launch, to overlap the one ahead,", 40 },
	[PROVE_READ] = { "the host reads", 16 },
	[PROVE_CAPTURE_BEGIN] = { "begin capture", 10 },
	[PROVE_CAPTURE_END] = { "end capture", 20 },
	[PROVE_GRAPH_LAUNCH] = { "launch graph", 16 },
	[PROVE_RESET] = { "reset context", 2 },
	[PROVE_HOG] = { "others take or give back", 8 },
	[PROVE_FAULT] = { "a call will fail", 24 },
	[PROVE_REAP] = { "reap", 10 },
	[PROVE_WAIT] = { "wait for memory", 4 },
	[PROVE_TRIM] = { "trim", 6 },
};

static enum prove_op random_op(struct random *random)
{
	uint64_t all = 0;
	uint64_t dice;
	int op = 0;

	for (int i = 0; i < PROVE_OPS; i++)
		all += ops[i].weight;
	dice = random_below(random, all);
	while (dice >= ops[op].weight)
		dice -= ops[op++].weight;
	return (enum prove_op)op;
}

/* The parameters of one program.  With few blocks, memory is reused quickly. */
struct character {
	uint32_t n_streams;
	uint32_t n_contexts;
	uint32_t n_blocks;
	uint32_t n_sizes;
	uint32_t first_size;
	uint32_t n_before; /* steps before anything but memory and work of the legacy stream */
	uint32_t n_ending; /* and then steps that end that time */
	bool is_slow; /* time goes by rarely: most work is in flight when its memory is freed */
};

#define N_USUAL 8
#define LOOP    4 /* steps */

/* Mostly one of a few sizes, as in a loop, so that freed blocks serve later requests. */
static uint64_t random_bytes(struct random *random, const struct character *like)
{
	static const uint64_t usual[N_USUAL] = { 512, 4 * GPC_KIB, 100000, 700 * GPC_KIB, GPC_MIB,
		3 * GPC_MIB, 9 * GPC_MIB, 14 * GPC_MIB };

	if (random_below(random, 5) > 0)
		return usual[(like->first_size + random_below(random, like->n_sizes)) % N_USUAL];
	return random_log(random, 512, 16 * GPC_MIB);
}

static uint64_t random_amount(struct random *random, const struct character *like, enum prove_op op)
{
	if (op == PROVE_ALLOC || op == PROVE_TRIM)
		return random_bytes(random, like);
	if (op == PROVE_LAUNCH || op == PROVE_LAUNCH_EARLY)
		return random_below(random, 4 * MS);
	if (op == PROVE_TIME)
		return random_below(random, like->is_slow ? MS / 10 : 3 * MS);
	if (op == PROVE_HOG)
		return random_below(random, 64) * GPC_MIB;
	if (op == PROVE_WAIT)
		return random_below(random, 2) * random_bytes(random, like);
	return random_below(random, 4);
}

static bool is_launch(const struct prove_step *step)
{
	return step->op == PROVE_LAUNCH || step->op == PROVE_LAUNCH_EARLY;
}

static struct prove_step random_step(struct random *random, const struct character *like)
{
	struct prove_step step = { .op = (uint8_t)random_op(random) };

	step.thread = (uint8_t)random_below(random, PROVE_THREADS);
	/* One context has most of the work, as in most programs. */
	step.context = like->n_contexts > 1 && random_below(random, 4) == 0;
	step.stream = (uint8_t)random_below(random, like->n_streams);
	step.a = (uint8_t)random_below(random, like->n_blocks);
	/* A kernel uses a second block in one of three. */
	step.b = (uint8_t)random_below(random, is_launch(&step) ? 3 * like->n_blocks : 24);
	step.n = random_amount(random, like, (enum prove_op)step.op);
	if (step.op == PROVE_EVENT_RECORD || step.op == PROVE_EVENT_WAIT ||
		step.op == PROVE_EVENT_SYNC)
		step.a %= PROVE_EVENTS;
	return step;
}

/*
 * Generates steps before the end of the one-stream rule, in loops of one thread each: at that moment memory must have a
 * new owner while work of the old one is in flight.
 */
static void generate_loop(
	struct random *random, const struct character *like, struct prove_step *steps)
{
	static const enum prove_op loop[LOOP] = { PROVE_ALLOC, PROVE_LAUNCH, PROVE_FREE,
		PROVE_ALLOC };

	steps[0] = random_step(random, like);
	steps[0].stream = PROVE_LEGACY;
	steps[0].a = (uint8_t)random_below(random, like->n_blocks);
	steps[0].b = PROVE_BLOCKS;
	for (uint32_t i = 0; i < LOOP; i++) {
		steps[i] = steps[0];
		steps[i].op = (uint8_t)loop[i];
		steps[i].n = random_amount(random, like, loop[i]);
	}
}

/* A step at the end of the one-stream rule. */
static struct prove_step ending_step(struct random *random, const struct character *like)
{
	static const enum prove_op ending[] = { PROVE_STREAM_CREATE, PROVE_STREAM_CREATE,
		PROVE_CONTINUE, PROVE_CONTINUE, PROVE_CONTINUE, PROVE_LAUNCH, PROVE_LAUNCH,
		PROVE_LAUNCH, PROVE_LAUNCH, PROVE_ALLOC, PROVE_FREE, PROVE_PER_THREAD_USE,
		PROVE_PEER, PROVE_EXPORT, PROVE_FAULT, PROVE_OVERLAP_USE, PROVE_LAUNCH_EARLY,
		PROVE_LAUNCH_EARLY };
	struct prove_step step = random_step(random, like);

	step.op = (uint8_t)ending[random_below(random, sizeof ending / sizeof *ending)];
	step.a = (uint8_t)random_below(random, like->n_blocks);
	step.n = random_amount(random, like, (enum prove_op)step.op);
	return step;
}

static struct character random_character(struct random *random)
{
	return (struct character){
		/* Some programs never have a second stream. */
		.n_streams = random_below(random, 8) == 0 ? 1 : PROVE_STREAMS,
		.n_contexts = 1 + (uint32_t)random_below(random, PROVE_CONTEXTS),
		.n_blocks = 1 + (uint32_t)random_below(random, PROVE_BLOCKS),
		.n_sizes = 1 + (uint32_t)random_below(random, N_USUAL),
		.first_size = (uint32_t)random_below(random, N_USUAL),
		.is_slow = random_below(random, 2),
	};
}

/* Little memory that is reused quickly, and a second stream at the end. */
static void make_ending(struct random *random, struct character *like)
{
	like->n_streams = PROVE_STREAMS;
	like->n_blocks = 1 + (uint32_t)random_below(random, 4);
	like->n_sizes = 1;
	like->n_before = LOOP * (2 + (uint32_t)random_below(random, 8));
	like->n_ending = 20 + (uint32_t)random_below(random, 20);
}

void prove_generate(struct prove_program *program, uint64_t seed, uint64_t number)
{
	static const int versions[] = { 13000, 13000, 13000, 12040 };
	static const uint32_t queues[] = { 0, 0, 2, 16 };
	static const uint64_t limits[] = { GPC_MIB, 8 * GPC_MIB, 64 * GPC_MIB };
	struct random random = random_start(seed, number);
	struct character like;

	for (int i = 0; i < 8; i++)
		(void)random_next(&random);
	program->driver_version = versions[random_below(&random, 4)];
	program->pending_limit = limits[random_below(&random, 3)];
	program->is_one_stream = random_below(&random, 3) > 0;
	program->queue = queues[random_below(&random, 4)];
	program->is_event_queued = random_below(&random, 2);
	/* We do not rely on waits of cuMemFree; with them fewer errors would show. */
	program->free_waits = random_below(&random, 4) ? UINT64_MAX : 4 * GPC_MIB;
	program->free_waits_alone = random_below(&random, 2);
	like = random_character(&random);
	if (program->is_one_stream && random_below(&random, 4) > 0)
		make_ending(&random, &like);
	/* Short programs, because each has only one such moment. */
	program->n_steps = like.n_before + like.n_ending;
	if (!like.n_before || random_below(&random, 4) == 0)
		program->n_steps += (uint32_t)random_log(&random, 32, PROVE_STEPS - 200);
	for (uint32_t i = 0; i < like.n_before; i += LOOP)
		generate_loop(&random, &like, &program->steps[i]);
	for (uint32_t i = like.n_before; i < program->n_steps; i++)
		program->steps[i] = i < like.n_before + like.n_ending ? ending_step(&random, &like)
								      : random_step(&random, &like);
}

/* ---- shorter ---- */

/* Removes the steps from .. from + n if the program still fails without them. */
static bool leave_out(
	struct prove_program *program, enum prove_variant variant, uint32_t from, uint32_t n)
{
	static struct prove_program shorter;
	struct prove_result result;

	shorter = *program;
	memmove(&shorter.steps[from], &shorter.steps[from + n],
		(shorter.n_steps - from - n) * sizeof *shorter.steps);
	shorter.n_steps -= n;
	result = prove_run(&shorter, variant);
	if (!prove_is_bad(&result))
		return false;
	*program = shorter;
	return true;
}

void prove_shrink(struct prove_program *program, enum prove_variant variant)
{
	bool has_changed = true;

	while (has_changed) {
		has_changed = false;
		for (uint32_t n = program->n_steps / 2; n > 0; n /= 2) {
			uint32_t from = program->n_steps;

			/* From the end, which is most often what came after. */
			while (from > 0) {
				uint32_t part = from < n ? from : n;

				from -= part;
				has_changed |= leave_out(program, variant, from, part);
			}
		}
	}
}

/* ---- written out ---- */

static const char *stream_name(const struct prove_step *step)
{
	static const char *const names[PROVE_STREAMS] = { "the legacy stream", "stream 1",
		"stream 2", "stream 3", "its own stream", "its per-thread stream" };

	return names[step->stream];
}

static void print_step(uint32_t number, const struct prove_step *step)
{
	printf("  %3u  thread %u  context %u  %s", number, step->thread, step->context,
		ops[step->op].name);
	if (step->op == PROVE_ALLOC || step->op == PROVE_FREE || is_launch(step) ||
		step->op == PROVE_EXPORT)
		printf(" block %c", 'a' + step->a);
	if (is_launch(step) && step->b < PROVE_BLOCKS)
		printf(" and %c", 'a' + step->b);
	if (step->op == PROVE_EVENT_RECORD || step->op == PROVE_EVENT_WAIT ||
		step->op == PROVE_EVENT_SYNC)
		printf(" %u", step->a);
	if (is_launch(step) || step->op == PROVE_STREAM_CREATE ||
		step->op == PROVE_STREAM_DESTROY || step->op == PROVE_STREAM_SYNC ||
		step->op == PROVE_EVENT_RECORD || step->op == PROVE_EVENT_WAIT ||
		step->op == PROVE_GRAPH_LAUNCH)
		printf(", %s%s", stream_name(step),
			step->op == PROVE_STREAM_CREATE && step->stream <= PROVE_SHARED &&
					step->b % 2
				? " (blocking)"
				: "");
	if (step->op == PROVE_ALLOC || step->op == PROVE_TRIM || step->op == PROVE_WAIT ||
		step->op == PROVE_HOG)
		printf(", %llu bytes", (unsigned long long)step->n);
	if (step->op == PROVE_ALLOC && prove_is_exact(step))
		printf(" (exact)");
	if (is_launch(step) || step->op == PROVE_TIME)
		printf(", %llu us", (unsigned long long)step->n / 1000);
	if (step->op == PROVE_FAULT)
		printf(" (kind %u)", step->b);
	printf("\n");
}

void prove_print(const struct prove_program *program, const struct prove_result *result)
{
	static const char *const kinds[] = { [GPC_SIM_RACE_HANDED_OUT] = "handed out",
		[GPC_SIM_RACE_OVERTAKEN] = "overtaken",
		[GPC_SIM_RACE_EXPOSED] = "exposed",
		[GPC_SIM_RACE_READ] = "read" };

	printf("  a program of %u steps (driver %d%s", program->n_steps, program->driver_version,
		program->is_one_stream ? ", one stream at first" : "");
	if (program->queue)
		printf(", queues of %u%s", program->queue,
			program->is_event_queued ? ", events of contexts in them" : "");
	printf("%s):\n", program->free_waits < UINT64_MAX ? ", large frees wait" : "");
	for (uint32_t i = 0; i < program->n_steps; i++)
		print_step(i, &program->steps[i]);
	if (result->problem)
		printf("  wrong: %s\n", result->problem);
	if (!result->has_first)
		return;
	if (result->first.kind == GPC_SIM_RACE_READ) {
		printf("  read by step %llu, while work before a free may still run\n",
			(unsigned long long)result->first.new_owner.frames[0]);
		return;
	}
	printf("  %s: %llu bytes of the block of step %llu are the block of step %llu, while work "
	       "of the first, on stream number %llu, may still run\n",
		kinds[result->first.kind], (unsigned long long)result->first.size,
		(unsigned long long)result->first.old_owner.frames[0],
		(unsigned long long)result->first.new_owner.frames[0],
		(unsigned long long)result->first.old_stream);
}
