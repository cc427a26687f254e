/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `symbols`: the driver functions that the library intercepts, and how each is handled.  The tool includes the table of
 * the library (preload/symbols.def), but none of its code.
 */
#include <string.h>

#include "tools/gpumem-report/output/json.h"

enum gets {
#define GETS(word, text) GETS_##word,
#include "tools/gpumem-report/gets.def"
#undef GETS
};

static const struct gpc_words gets_of[] = {
#define GETS(word, text) { #word, text },
#include "tools/gpumem-report/gets.def"
#undef GETS
};

static const struct symbol {
	const char *name;
	unsigned since; /* CUDA version: 1000 * major + 10 * minor */
	enum gets gets;
} symbols[] = {
#define HOOK(name, since, gets, params, args) { #name, since, GETS_##gets },
#include "preload/symbols.def"
};

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

/* The longest group has some thousand characters. */
#define GROUP_TEXT 16384

static bool is_wanted(const struct gpc_report *report, const struct symbol *symbol)
{
	return !report->options->target || strstr(symbol->name, report->options->target);
}

static void print_group(struct gpc_report *report, enum gets gets)
{
	GPC_TEXT(text, GROUP_TEXT);

	for (size_t i = 0; i < N_OF(symbols); i++)
		if (symbols[i].gets == gets && is_wanted(report, &symbols[i]))
			gpc_text_add(&text, "%s%s", text.len ? " " : "", symbols[i].name);
	if (!text.len)
		return;
	gpc_paper_section(&report->paper, gets_of[gets].word, "%s", gets_of[gets].text);
	gpc_paper_wrap(&report->paper, NULL, text.buf);
}

static void print_json(struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "symbols");
	struct json_object *array = gpc_json_add(root, "symbols", json_object_new_array());

	for (size_t i = 0; i < N_OF(symbols); i++) {
		struct json_object *object;

		if (!is_wanted(report, &symbols[i]))
			continue;
		object = gpc_json_row(array);
		gpc_json_text(object, "name", symbols[i].name);
		json_object_object_add(
			object, "cuda_version", json_object_new_int((int)symbols[i].since));
		gpc_json_text(object, "gets", gets_of[symbols[i].gets].word);
		gpc_json_text(object, "text", gets_of[symbols[i].gets].text);
	}
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_symbols(struct gpc_report *report)
{
	size_t n_wanted = 0;

	for (size_t i = 0; i < N_OF(symbols); i++)
		n_wanted += is_wanted(report, &symbols[i]);
	if (n_wanted == 0) {
		gpc_complain("gpucache intercepts no function of the driver with `%s` in its name",
			report->options->target);
		return GPC_EXIT_NOT_FOUND;
	}
	if (report->options->json) {
		print_json(report);
		return GPC_EXIT_MADE;
	}
	if (report->options->target)
		fprintf(report->paper.out, "Functions of the driver with `%s` in their name.\n",
			report->options->target);
	else
		fprintf(report->paper.out,
			"%zu functions of the driver; all others pass untouched.\n", n_wanted);
	for (unsigned gets = 0; gets < N_OF(gets_of); gets++)
		print_group(report, (enum gets)gets);
	return GPC_EXIT_MADE;
}
