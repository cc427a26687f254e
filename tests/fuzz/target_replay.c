/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of gpumem-replay, and the workloads that they name.  rules.mk renames its functions, because
 * gpumem-report has some of the same name.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/replay/workload.h"
#include "tests/fuzz/fuzz.h"
#include "tools/gpumem-replay/arguments.h"

/* Parses all keys of a workload without making it: appends an unknown key, which is an error. */
static void read_workload(const char *spec)
{
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);
	struct gpc_trace trace;
	size_t size = strlen(spec) + sizeof ":,=";
	char *wrong = malloc(size);

	snprintf(wrong, size, "%s%s=", spec, strchr(spec, ':') ? "," : ":");
	FUZZ_EXPECT(gpc_workload_make(wrong, &text, &trace) == GPC_INVALID && why[0]);
	free(wrong);
}

static void expect_sound(const struct gpc_arguments *arguments)
{
	const struct gpc_run_settings *settings = &arguments->settings;
	uint32_t divisions = settings->policy.roundup_divisions;

	FUZZ_EXPECT(arguments->n_sources <= GPC_MAX_SOURCES);
	FUZZ_EXPECT(arguments->n_policies > 0 && arguments->n_policies <= GPC_MAX_POLICIES);
	FUZZ_EXPECT(arguments->which.device >= -1 && arguments->which.device <= UINT8_MAX);
	FUZZ_EXPECT(settings->device_bytes <= UINT64_C(1) << 42);
	FUZZ_EXPECT(!(divisions & (divisions - 1)) && divisions <= 64);
	FUZZ_EXPECT(settings->policy.gc_threshold_ppm <= 1000000);
	for (unsigned i = 0; i < arguments->n_sources; i++)
		if (arguments->sources[i].is_workload)
			read_workload(arguments->sources[i].text);
}

static void run_replay(const unsigned char *data, size_t size)
{
	struct gpc_arguments arguments = { .n_sources = 0 };
	struct fuzz_words words;

	fuzz_words_init(&words, data, size);
	optind = 0;
	if (gpc_arguments_read(words.argc, words.argv, &arguments) == GPC_ARGUMENTS_RUN)
		expect_sound(&arguments);
	fuzz_words_fini(&words);
}

static void mutate_replay(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { " ", " -", " --", "=", ",", ":", ".", " -p ", "none",
		"gpucache", "pytorch-expandable", " -m ", "4TiB", "2MiB", "16EiB", " -s ",
		"max_split_size_mb:", "roundup_power2_divisions:", "garbage_collection_threshold:",
		"nan", "-0", "1e-9", "0.9999999", "99999999999999999999", " -g ", "training",
		"inference:", "pipeline:", "random:", "seed=", "steps=", "size=", "width=",
		" --device ", " --sizes", " --smallest", " --save ", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_replay = {
	.name = "replay", .share = 3, .run = run_replay, .mutate = mutate_replay
};
