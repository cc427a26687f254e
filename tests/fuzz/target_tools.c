/* SPDX-License-Identifier: Apache-2.0 */
/* Two inputs of gpumem-report: programs and debug files, and command lines. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/format/recording_builder.h"
#include "tools/gpumem-report/arguments.h"
#include "tools/gpumem-report/symbols/symbolize.h"

/* --- Programs, libraries and debug files ------------------------------------------------------- */

#define MODULE_AT   UINT64_C(0x400000)
#define MODULE_SIZE UINT64_C(0x10000)

/* libdw leaks memory on a damaged line table, which is harmless in a tool that soon exits. */
FUZZ_FOR_SANITIZER const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so\n";
}

/* Writes a recording in which the fuzzed file is a module, loaded at the addresses that it was linked for. */
static const char *write_recording(const char *module)
{
	static char path[128];
	struct recording_builder builder;

	snprintf(path, sizeof path, "%s/object.gpucache", fuzz_folder());
	builder_init(&builder);
	builder_module(&builder, module, MODULE_AT, MODULE_AT + MODULE_SIZE, 0);
	builder_write(&builder, path);
	builder_fini(&builder);
	return path;
}

static void run_object(const unsigned char *data, size_t size)
{
	struct gpc_places places = { .symbols_of = GPC_SYMBOLS_OF_ALL };
	char module[128];
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);
	struct gpc_recording *recording;
	struct gpc_symbols *symbols;

	/* The debug link of the programs in the corpus names this file, so the same bytes are their debug file. */
	fuzz_file("object.debug", data, size);
	snprintf(module, sizeof module, "%s", fuzz_file("object", data, size));
	FUZZ_EXPECT(gpc_recording_open(write_recording(module), &recording, &text) == GPC_OK);
	symbols = gpc_symbols_create(recording, &places);
	FUZZ_EXPECT(symbols);
	for (uint64_t at = 0xa0; at < 0x140; at += 5) {
		const struct gpc_symbol_list *list = gpc_symbols_find(symbols, MODULE_AT + at);

		FUZZ_EXPECT(list->n > 0);
		for (size_t i = 0; i < list->n; i++)
			for (const char *c = list->rows[i].function; c && *c; c++)
				FUZZ_EXPECT((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
	gpc_symbols_destroy(symbols);
	gpc_recording_close(recording);
}

/* Changes the ELF header, the program headers behind it, the section table at the end, or any other place. */
static void mutate_object(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	size_t size = input->size ? input->size : 1;
	uint64_t at = fuzz_draw(random, size);
	uint64_t n = 1 + fuzz_draw(random, 64);
	uint64_t from = fuzz_draw(random, other->size ? other->size : 1);

	switch (fuzz_draw(random, 8)) {
	case 0:
		at = fuzz_draw(random, 64);
		break;
	case 1:
		at = 64 + fuzz_draw(random, 8 * 56);
		break;
	case 2:
	case 3:
		at = size - 1 - fuzz_draw(random, size < 40 * 64 ? size : 40 * 64);
		break;
	case 4:
		if (n < input->size - at && n < other->size - from)
			memcpy(input->data + at, other->data + from, n);
		return;
	case 5:
		if (fuzz_draw(random, 8) == 0)
			input->size = at;
		return;
	default:
		break;
	}
	n = UINT64_C(1) << fuzz_draw(random, 4);
	fuzz_poke(random, input, at / n * n, (unsigned)n);
}

const struct fuzz_target fuzz_object = {
	.name = "object", .share = 5, .is_packed = true, .run = run_object, .mutate = mutate_object
};

/* --- Command lines ----------------------------------------------------------------------------- */

static void run_arguments(const unsigned char *data, size_t size)
{
	struct gpc_options options = { 0 };
	const struct gpc_command *command = NULL;
	struct fuzz_words words;

	fuzz_words_init(&words, data, size);
	optind = 0;
	if (gpc_arguments_read(words.argc, words.argv, &options, &command) == GPC_ARGUMENTS_RUN)
		FUZZ_EXPECT(command && command->run);
	free(options.targets);
	fuzz_words_fini(&words);
}

static void mutate_arguments(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { " ", " -", " --", "summary", "export", "watch", "fit",
		" --format=", "csv,noheader", " --query=", " --at=", "oom:3",
		" --where=", " --fail-on=", "growth>10%", " --device", " -n", " -o", " --on",
		"h100", " --ended", " --progress", "99999999999999999999", "-1", "1e9", "80%",
		"16GiB", " -p", " -g", " --sizes", "=", ",", "..", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_arguments = {
	.name = "arguments", .share = 3, .run = run_arguments, .mutate = mutate_arguments
};
