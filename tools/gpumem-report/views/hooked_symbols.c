/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `symbols`: the driver functions that the library intercepts, and how each is handled.  The tool includes the table of
 * the library (preload/symbols.def), but none of its code.
 */
#include <string.h>

#include "tools/gpumem-report/output/page.h"

enum gets {
#define GETS(word, text) GETS_##word,
#include "tools/gpumem-report/gets.def"
};

static const struct gpc_words gets_of[] = {
#define GETS(word, text) { #word, text },
#include "tools/gpumem-report/gets.def"
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

static void show_group(const struct gpc_report *report, enum gets gets)
{
	static const struct gpc_column names_columns[] = { { NULL, "" } };
	const struct gpc_section section = { NULL, gets_of[gets].word, GPC_COLUMNS(names_columns),
		.flags = GPC_TEXT_ONLY | GPC_BESIDE };
	GPC_TEXT(text, GROUP_TEXT);

	for (size_t i = 0; i < N_OF(symbols); i++)
		if (symbols[i].gets == gets && is_wanted(report, &symbols[i]))
			gpc_text_add(&text, "%s%s", text.len ? " " : "", symbols[i].name);
	if (!text.len)
		return;
	gpc_document_open(report->doc, &section);
	gpc_document_say(report->doc, "%s", gets_of[gets].text);
	gpc_document_row(report->doc, gpc_sentence(text.buf));
	gpc_document_close(report->doc);
}

enum gpc_exit gpc_cmd_symbols(struct gpc_report *report)
{
	static const struct gpc_column columns[] = { { "name" }, { "cuda_version" }, { "gets" },
		{ "text" } };
	static const struct gpc_section section = { "symbols", NULL, GPC_COLUMNS(columns) };
	struct gpc_document *doc = report->doc;
	size_t n_wanted = 0;

	for (size_t i = 0; i < N_OF(symbols); i++)
		n_wanted += is_wanted(report, &symbols[i]);
	if (n_wanted == 0) {
		gpc_complain("gpucache intercepts no function of the driver with `%s` in its name",
			report->options->target);
		return GPC_EXIT_NOT_FOUND;
	}
	gpc_page_begin(report, "symbols");
	gpc_document_open(doc, &section);
	if (report->options->target)
		gpc_document_say(doc, "Functions of the driver with `%s` in their name.",
			report->options->target);
	else
		gpc_document_say(
			doc, "%zu functions of the driver; all others pass untouched.", n_wanted);
	for (size_t i = 0; i < N_OF(symbols); i++)
		if (is_wanted(report, &symbols[i]))
			gpc_document_row(doc, gpc_name(symbols[i].name),
				gpc_number(symbols[i].since),
				gpc_name(gets_of[symbols[i].gets].word),
				gpc_name(gets_of[symbols[i].gets].text));
	gpc_document_close(doc);
	for (unsigned gets = 0; gets < N_OF(gets_of); gets++)
		show_group(report, (enum gets)gets);
	gpc_document_end(doc);
	return GPC_EXIT_MADE;
}
