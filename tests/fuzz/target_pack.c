/* SPDX-License-Identifier: Apache-2.0 */
/* Files of packed symbols (gpumem-report pack).  Whatever a file contains, a lookup returns clean text or nothing. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/gpumem-report/symbols/pack_file.h"

#define SUFFIX_LENGTH (sizeof GPC_PACK_SUFFIX - 1)

/* The files of the corpus have symbols for some of these addresses. */
static const uint64_t addresses[] = { 0x401101, 0x401102, 0xffffffffffffffff, 0 };

static void expect_texts(struct gpc_symbol_list *list)
{
	FUZZ_EXPECT((list->n == 0) == (list->rows == NULL));
	for (size_t i = 0; i < list->n; i++) {
		const char *function = list->rows[i].function;

		/* A name has no control characters, which a terminal would obey. */
		for (size_t c = 0; function && function[c]; c++)
			FUZZ_EXPECT((unsigned char)function[c] >= 0x20 && function[c] != 0x7f);
		free(list->rows[i].function);
		free(list->rows[i].file);
	}
	free(list->rows);
}

static void run_pack(const unsigned char *data, size_t size)
{
	struct gpc_recording recording = { .header = { .pid = 4711, .host = "gpu07" } };
	struct json_object *pack;
	char path[128];

	snprintf(path, sizeof path, "%s", fuzz_file("p" GPC_PACK_SUFFIX, data, size));
	path[strlen(path) - SUFFIX_LENGTH] = '\0';
	recording.path = path;
	pack = gpc_pack_open(&recording);
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
		struct gpc_symbol_list list = gpc_pack_find(pack, addresses[i]);

		FUZZ_EXPECT(pack || list.n == 0);
		expect_texts(&list);
	}
	json_object_put(pack);
}

static void mutate_pack(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	static const char *const words[] = { "null", "{}", "[]", "\"\"",
		"\"schema\":", "\"recording\":", "\"addresses\":", "\"function\":", "\"line\":",
		"\"0x0\":", "[{}]", "[null]", "1e308", "-1", "\"\\u001b[2J\"", "\"\\u0000\"",
		"[[[[[[[[", "{\"a\":{\"a\":", NULL };

	fuzz_mutate_text(random, input, other, words);
}

const struct fuzz_target fuzz_pack = {
	.name = "pack", .share = 5, .run = run_pack, .mutate = mutate_pack
};
