/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of gpumem-replay.  rules.mk renames its functions, because gpumem-report has some of the same name. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/gpumem-replay/arguments.h"

static void expect_sound(const struct gpc_arguments *arguments)
{
	const struct gpc_run_settings *settings = &arguments->settings;
	uint32_t divisions = settings->policy.roundup_divisions;

	FUZZ_EXPECT(arguments->n_paths <= GPC_MAX_TRACES);
	FUZZ_EXPECT(arguments->n_policies > 0 && arguments->n_policies <= GPC_MAX_POLICIES);
	FUZZ_EXPECT(arguments->which.device >= -1 && arguments->which.device <= UINT8_MAX);
	FUZZ_EXPECT(settings->gpu >= 0 && settings->gpu <= UINT8_MAX);
	FUZZ_EXPECT(settings->device_bytes <= UINT64_C(1) << 42);
	FUZZ_EXPECT(!(divisions & (divisions - 1)) && divisions <= 64);
	FUZZ_EXPECT(settings->policy.gc_threshold_ppm <= 1000000);
}

static void run_replay(const unsigned char *data, size_t size)
{
	struct gpc_arguments arguments = { .n_paths = 0 };
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
		"nan", "-0", "1e-9", "0.9999999", "99999999999999999999", " --device ", " --gpu",
		" --sizes", " --smallest", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_replay = {
	.name = "replay", .share = 3, .run = run_replay, .mutate = mutate_replay
};
