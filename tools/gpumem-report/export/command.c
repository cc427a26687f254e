/* SPDX-License-Identifier: Apache-2.0 */
/* `export`: writes a recording in the format of another tool. */
#include <string.h>

#include "tools/gpumem-report/export/export.h"

struct format {
	const char *name;
	enum {
		TEXT,
		BINARY
	} kind;
	const char *help;
	enum gpc_exit (*write)(struct gpc_report *report);
};

static const struct format formats[] = {
#define ROW(function, name, kind, help) { name, kind, help, gpc_export_##function },
	GPC_EXPORT_FORMATS(ROW)
#undef ROW
};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* The text of --format.  `--json` alone means --format=json. */
static const char *format_of(const struct gpc_options *options)
{
	if (!options->format && options->json)
		return "json";
	return options->format;
}

/* True if `text` begins with this word, which ends at a comma or with the text. */
static bool begins_with(const char *text, const char *word)
{
	size_t len = strcspn(text, ",");

	return strlen(word) == len && strncmp(text, word, len) == 0;
}

static const struct format *find_format(const struct gpc_options *options)
{
	const char *text = format_of(options);

	for (size_t i = 0; text && i < N_FORMATS; i++)
		if (begins_with(text, formats[i].name))
			return &formats[i];
	return NULL;
}

void gpc_export_print_formats(void)
{
	for (size_t i = 0; i < N_FORMATS; i++)
		printf("  %-17s %s\n", formats[i].name, formats[i].help);
}

bool gpc_export_is_binary(const struct gpc_options *options)
{
	const struct format *format = find_format(options);

	return format && format->kind == BINARY;
}

bool gpc_export_has_word(const struct gpc_options *options, const char *word)
{
	const char *text = format_of(options);

	while ((text = strchr(text, ',')))
		if (begins_with(++text, word))
			return true;
	return false;
}

/* Only csv takes words after its name, and --query. */
static bool are_words_known(const struct gpc_options *options)
{
	bool is_csv = find_format(options)->write == gpc_export_csv;
	const char *text = format_of(options);

	while ((text = strchr(text, ','))) {
		text++;
		if (!is_csv || (!begins_with(text, "noheader") && !begins_with(text, "nounits")))
			return gpc_refuse(
				"--format=csv takes noheader and nounits, and no other "
				"format a word: `%s`",
				text);
	}
	return is_csv || !options->query || gpc_refuse("--query is of --format=csv");
}

bool gpc_export_is_possible(const struct gpc_options *options)
{
	GPC_TEXT(text, 200);

	if (find_format(options))
		return are_words_known(options) && gpc_export_is_query_possible(options);
	for (size_t i = 0; i < N_FORMATS; i++)
		gpc_text_add(
			&text, "%s%s", i ? i + 1 < N_FORMATS ? ", " : " or " : "", formats[i].name);
	if (format_of(options))
		return gpc_refuse("--format needs %s, not `%s`", text.buf, format_of(options));
	return gpc_refuse("export needs --format=%s", text.buf);
}

enum gpc_exit gpc_cmd_export(struct gpc_report *report)
{
	return find_format(report->options)->write(report);
}
