/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload is a table of keys with ranges, and a function that writes a script from a seeded random generator.
 */
#include "tests/bench/replay/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/bench/replay/script.h"

struct key {
	const char *name;
	uint64_t usual;
	uint64_t least;
	uint64_t most;
	const char *help;
};

/* The keys, in the order of the workload's enum; `seed` is always first. */
#define SEED                                                    \
	{                                                       \
		"seed", 1, 0, UINT32_MAX, "chooses what varies" \
	}

static const struct workload {
	const char *name;
	const char *help;
	void (*make)(struct gpc_script *script);
	struct key keys[GPC_SCRIPT_MAX_KEYS];
} workloads[] = {
	{ "training", "forward, backward in reverse, gradients reduced on a side stream, optimizer",
		gpc_workload_training,
		{ SEED, { "steps", 6, 1, 10000, "of the optimizer" },
			{ "layers", 24, 1, 1000, "of the model" },
			{ "width", 16 * GPC_MIB, 4096, 64 * GPC_GIB, "an activation" },
			{ "bucket", 4, 1, 1000, "layers that are reduced together" },
			{ "vary", 10, 0, 90, "percent that a batch may be shorter" } } },
	{ "inference", "requests of varying length, whose key-value caches grow by copying",
		gpc_workload_inference,
		{ SEED, { "requests", 64, 1, 100000, "in all" },
			{ "batch", 8, 1, 256, "requests at a time" },
			{ "layers", 4, 1, 200, "of the model" },
			{ "tokens", 64, 1, 100000, "answered at most" },
			{ "token", 64 * GPC_KIB, 512, GPC_GIB,
				"of the cache, each token and layer" } } },
	{ "pipeline", "producers and consumers on streams; freed while the consumer's kernel runs",
		gpc_workload_pipeline,
		{ SEED, { "items", 4000, 1, 10000000, "in all" },
			{ "producers", 2, 1, 16, "streams" }, { "consumers", 2, 1, 16, "streams" },
			{ "depth", 64, 1, 100000, "items before the host waits" },
			{ "size", 8 * GPC_MIB, 512, 16 * GPC_GIB, "the largest item" } } },
	{ "random", "anything in any order", gpc_workload_random,
		{ SEED, { "steps", 20000, 1, 10000000, "in all" },
			{ "streams", 4, 1, 32, "in use" },
			{ "blocks", 400, 1, 10000, "alive at most" },
			{ "size", 64 * GPC_MIB, 512, 16 * GPC_GIB, "the largest block" } } },
};

#define N_WORKLOADS (sizeof workloads / sizeof workloads[0])

/* The workload of "NAME:" in the text, or NULL. */
static const struct workload *find(const char *spec)
{
	size_t length = strcspn(spec, ":");

	for (size_t i = 0; i < N_WORKLOADS; i++)
		if (strlen(workloads[i].name) == length &&
			strncmp(workloads[i].name, spec, length) == 0)
			return &workloads[i];
	return NULL;
}

static bool read_key(
	const struct workload *workload, const char *text, size_t length, struct gpc_script *script)
{
	const char *equals = memchr(text, '=', length);
	size_t name_length = equals ? (size_t)(equals - text) : 0;
	uint64_t value = 0;

	for (size_t i = 0; equals && i < GPC_SCRIPT_MAX_KEYS && workload->keys[i].name; i++) {
		const struct key *key = &workload->keys[i];

		if (strlen(key->name) != name_length || strncmp(key->name, text, name_length) != 0)
			continue;
		if (!gpc_bytes_parse(equals + 1, length - name_length - 1, &value) ||
			value < key->least || value > key->most)
			return false;
		script->values[i] = value;
		return true;
	}
	return false;
}

static bool read_spec(const char *spec, struct gpc_text *why, struct gpc_script *script,
	const struct workload **ret_workload)
{
	const struct workload *workload = find(spec);
	const char *at = spec + strcspn(spec, ":");

	if (!workload) {
		gpc_text_add(why, "no such workload; there are");
		for (size_t i = 0; i < N_WORKLOADS; i++)
			gpc_text_add(why, "%s %s", i ? "," : "", workloads[i].name);
		return false;
	}
	for (size_t i = 0; i < GPC_SCRIPT_MAX_KEYS; i++)
		script->values[i] = workload->keys[i].usual;
	while (*at) {
		size_t length = strcspn(++at, ",");

		if (!read_key(workload, at, length, script)) {
			gpc_text_add(why,
				"`%.*s` is no key=value of workload %s; `gpumem-replay -h` lists "
				"them",
				(int)length, at, workload->name);
			return false;
		}
		at += length;
	}
	*ret_workload = workload;
	return true;
}

enum gpc_status gpc_workload_make(
	const char *spec, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	struct gpc_script script = { .builder = NULL };
	const struct workload *workload = NULL;

	if (!read_spec(spec, why, &script, &workload))
		return GPC_INVALID;
	/* Scramble the seed, so that neighbouring seeds differ from the start; a state of 0 would stay 0. */
	script.random = (script.values[0] + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	script.builder = gpc_trace_begin(spec, false);
	workload->make(&script);
	return gpc_trace_end(script.builder, GPC_OK, ret_trace);
}

void gpc_workload_print_help(void)
{
	for (size_t i = 0; i < N_WORKLOADS; i++) {
		printf("  %-10s %s\n", workloads[i].name, workloads[i].help);
		for (const struct key *key = workloads[i].keys; key->name; key++) {
			GPC_TEXT(text, 40);

			/* Keys that are sizes are recognised by their range. */
			if (key->least >= 512)
				gpc_text_add_bytes(&text, key->usual);
			else
				gpc_text_add(&text, "%" PRIu64, key->usual);
			printf("    %-10s %-11s %s\n", key->name, text.buf, key->help);
		}
	}
}
