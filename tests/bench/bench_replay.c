/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that the allocator reserves for the recorded allocations of tests/bench/traces, by gpumem-replay.
 *
 *   replay_TRACE          peak reserved; baseline: what PyTorch itself reserved when the trace was taken
 *   replay_TRACE_model    peak reserved; baseline: by the model of PyTorch on the same trace
 *   replay_TRACE_live     peak reserved; baseline: the peak of live bytes
 *   replay_TRACE_time     nanoseconds an operation; baseline: malloc and free of 64 B, halved
 */
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define MIB      (1024.0 * 1024.0)
#define N_ROUNDS 9
#define N_PAIRS  20000

/* The bytes that PyTorch reserved, from tests/bench/traces/README.md. */
static const struct {
	const char *name;
	double reserved_mib;
} traces[] = {
	{ "medium_1024_training", 24012 },
	{ "medium_512_training", 12074 },
	{ "medium_1024_inference", 3056 },
};

static struct json_object *run_replay(const char *build, const char *trace)
{
	static char text[65536];
	char command[1200];
	struct json_object *root;
	size_t len;
	FILE *pipe;

	snprintf(command, sizeof command,
		"%s/gpumem-replay --json -p gpucache -p pytorch tests/bench/traces/%s.csv.gz",
		build, trace);
	pipe = popen(command, "r");
	bench_check("popen", pipe != NULL);
	len = fread(text, 1, sizeof text - 1, pipe);
	bench_check(command, pclose(pipe) == 0);
	text[len] = '\0';
	root = json_tokener_parse(text);
	bench_check("reading the JSON", root != NULL);
	return root;
}

/* A figure of run `run` of the trace. */
static double figure(struct json_object *root, size_t run, const char *key)
{
	struct json_object *at = NULL;
	struct json_object *runs = NULL;

	bench_check("traces", json_object_object_get_ex(root, "traces", &at));
	bench_check(
		"runs", json_object_object_get_ex(json_object_array_get_idx(at, 0), "runs", &runs));
	bench_check(key, json_object_object_get_ex(json_object_array_get_idx(runs, run), key, &at));
	return json_object_get_double(at);
}

static void print_row(
	const char *trace, const char *suffix, double value, const char *unit, double baseline)
{
	char name[96];

	snprintf(name, sizeof name, "replay_%s%s", trace, suffix);
	bench_row(name, value, unit, baseline);
}

static void measure(const char *build, const char *trace, double reserved_mib)
{
	double mallocs[N_ROUNDS];
	double times[N_ROUNDS];
	double ours = 0, model = 0, live = 0;

	for (int i = 0; i < N_ROUNDS; i++) {
		struct json_object *root = run_replay(build, trace);

		mallocs[i] = bench_malloc_pair_ns(N_PAIRS) / 2;
		times[i] = figure(root, 0, "ns_per_operation");
		ours = figure(root, 0, "peak_reserved_bytes") / MIB;
		live = figure(root, 0, "peak_live_bytes") / MIB;
		model = figure(root, 1, "peak_reserved_bytes") / MIB;
		json_object_put(root);
	}
	print_row(trace, "", ours, "MiB", reserved_mib);
	print_row(trace, "_model", ours, "MiB", model);
	print_row(trace, "_live", ours, "MiB", live);
	print_row(trace, "_time", bench_median(times, N_ROUNDS), "ns",
		bench_median(mallocs, N_ROUNDS));
}

int main(void)
{
	char build[512];

	bench_find_build(build, sizeof build);
	for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++)
		measure(build, traces[i].name, traces[i].reserved_mib);
	return 0;
}
