/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of text: GPUCACHE_CONF and GPUCACHE_OUTPUT, GPUSIM, and the traces of gpumem-replay. */
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "record/identity.h"
#include "record/name.h"
#include "sim/gpu/config.h"
#include "tests/fuzz/fuzz.h"
#include "tools/gpumem-replay/trace_file.h"
#include "tools/replay/policy.h"
#include "tools/replay/run.h"

/* Copies the input as a string into a heap block of exactly its size, so that the sanitizer detects any overread. */
static char *copy_text(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* --- GPUCACHE_CONF ---------------------------------------------------------------------------- */

static void ignore_line(void *arg, const char *line)
{
	*(size_t *)arg += strlen(line);
}

/* Checks that the value of every option is valid: the option reads the text that it writes. */
static void expect_valid(struct gpc_config *config)
{
	char value[2 * GPC_CONFIG_MAX_STRING];
	size_t total = 0;

	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];
		struct gpc_text text = gpc_text_init(value, sizeof value);

		gpc_option_write(row, config, &text);
		FUZZ_EXPECT(gpc_option_read(row, config, value, strlen(value)));
	}
	FUZZ_EXPECT(config->n_warnings <= GPC_CONFIG_MAX_WARNINGS);
	for (unsigned i = 0; i < config->n_warnings; i++)
		FUZZ_EXPECT(strlen(config->warnings[i]) > 0);
	gpc_config_describe(config, ignore_line, &total);
	FUZZ_EXPECT(total > 0);
}

static void run_config(const unsigned char *data, size_t size)
{
	static const struct gpucache_header identity = { .pid = 1, .rank = -1 };
	char *text = copy_text(data, size);
	static struct gpc_config config;
	char name[1024];
	struct gpc_text path = gpc_text_init(name, sizeof name);
	char unknown = '\0';

	gpc_config_init(&config);
	gpc_config_parse(&config, text);
	expect_valid(&config);
	setenv("GPUCACHE_CONF", text, 1);
	setenv("GPUCACHE_OUTPUT", text, 1);
	gpc_config_load(&config);
	expect_valid(&config);
	gpc_name_expand(&path, text, &identity, 1, 1, &unknown);
	free(text);
}

static void mutate_config(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { "cache:", "record:", "stacks:", "python:",
		"max_split_size_mb:", "garbage_collection_threshold:", "limit:", "decay_ms:",
		"recording_size:", "output:", "rank:", "strict:", "oom_report:", "on", "off",
		"sampled", "80%", "0.8", "1.5GiB", "512M", "10s", "500ms", "-1", ",", ":", " ", "%",
		"%p", "%q{HOME}", "%q{", "99999999999999999999", "1e9", "0x10", "[1:2,>:4]", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_config = {
	.name = "config", .share = 7, .run = run_config, .mutate = mutate_config
};

/* --- GPUSIM ----------------------------------------------------------------------------------- */

static void run_sim(const unsigned char *data, size_t size)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	char *text = copy_text(data, size);

	(void)gpc_sim_config_parse(&config, text);
	FUZZ_EXPECT(config.n_devices <= GPC_SIM_MAX_DEVICES);
	FUZZ_EXPECT(config.n_processes <= GPC_SIM_MAX_PROCESSES);
	FUZZ_EXPECT(config.n_faults <= GPC_SIM_MAX_FAULTS);
	free(text);
}

static void mutate_sim(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { "memory:", "devices:", "reserved:", "context:",
		"foreign:", "driver:", "clock:", "costs:", "malloc_us:", "copy_us_per_mib:",
		"oom_after:", "fail:", "help:true", "published", "virtual", "cuMemAlloc_v2", "/",
		",", ":", "16GiB", "3GiB/4711/neighbour", "%", "-1", "1.5", "18446744073709551615",
		NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_sim = {
	.name = "sim", .share = 5, .run = run_sim, .mutate = mutate_sim
};

/* --- Traces ----------------------------------------------------------------------------------- */

/* Checks the invariants of trace.h. */
static void expect_trace(const struct gpc_trace *trace)
{
	unsigned char *lives = calloc((size_t)trace->n_slots + 1, 1);
	uint64_t time_ns = 0;

	for (uint64_t i = 0; i < trace->n_ops; i++) {
		const struct gpc_trace_op *op = &trace->ops[i];

		FUZZ_EXPECT(op->time_ns >= time_ns && op->stream < trace->n_streams);
		time_ns = op->time_ns;
		FUZZ_EXPECT(op->other < trace->n_streams);
		if (op->kind > GPC_TRACE_FREE && op->kind != GPC_TRACE_WORK)
			continue;
		FUZZ_EXPECT(op->slot < trace->n_slots);
		FUZZ_EXPECT(lives[op->slot] == (op->kind != GPC_TRACE_ALLOC));
		if (op->kind != GPC_TRACE_WORK)
			lives[op->slot]++;
	}
	free(lives);
}

/*
 * Replays a short trace.  A request may fail, but the heap stays whole.  Larger traces are left out, because kernels of
 * the simulated GPU use no block of more than 512 GiB.
 */
static void replay(const struct gpc_trace *trace)
{
	struct gpc_policy_ops fence = gpc_policy_gpucache; /* free_order:fence */
	const struct gpc_policy_ops *const policies[] = { &gpc_policy_gpucache, &fence,
		&gpc_policy_pytorch };
	const struct gpc_run_settings settings = { .check_always = true };
	struct gpc_run run;

	fence.is_late = false;
	fence.submits = NULL;
	if (trace->n_ops > 200 || trace->peak_live_bytes > UINT64_C(1) << 39)
		return;
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
		if (!gpc_run_once(trace, policies[i], &settings, &run))
			FUZZ_EXPECT(!run.broken && !run.n_races);
}

void fuzz_read_trace(const char *path)
{
	struct gpc_trace trace;
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);

	if (gpc_trace_read(path, (struct gpc_which){ .device = -1 }, &text, &trace)) {
		FUZZ_EXPECT(text.len > 0);
		return;
	}
	expect_trace(&trace);
	replay(&trace);
	gpc_trace_fini(&trace);
}

static void run_trace(const unsigned char *data, size_t size)
{
	fuzz_read_trace(fuzz_file("trace", data, size));
}

static void mutate_trace(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { "alloc,", "free,", "allocate", "allocate failure", ",",
		"\n", "op,id,size,stream,time_us\n", "Thread,Time,Action,Pointer,Size,Stream\n",
		"alloc,7,512,1,9\n", "free,7,512,1,9\n",
		"1,12:00:00.000001,allocate,0x7f00,256,0x2\n", "0x", "-", "12:00:00.1", "\r",
		"00000000000", "18446744073709551615", "18446744073709551614", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_trace = {
	.name = "trace", .share = 15, .run = run_trace, .mutate = mutate_trace
};
