/* SPDX-License-Identifier: Apache-2.0 */
/* `export`: a recording in the format of another tool. */
#include <string.h>

#include "tools/gpumem-report/export.h"

struct format {
	const char *name;
	enum gpc_exit (*write)(struct gpc_report *report);
};

static const struct format formats[] = {
#define ROW(function, name) { name, gpc_export_##function },
	GPC_EXPORT_FORMATS(ROW)
#undef ROW
};

#define N_FORMATS (sizeof formats / sizeof formats[0])

/* `--json` is a format as well. */
static const char *format_of(const struct gpc_options *options)
{
	if (!options->format && options->json)
		return "json";
	return options->format;
}

static const struct format *find_format(const struct gpc_options *options)
{
	const char *text = format_of(options);

	for (size_t i = 0; text && i < N_FORMATS; i++)
		if (strlen(formats[i].name) == strcspn(text, ",") &&
			strncmp(formats[i].name, text, strcspn(text, ",")) == 0)
			return &formats[i];
	return NULL;
}

bool gpc_export_is_binary(const struct gpc_options *options)
{
	const struct format *format = options->format ? find_format(options) : NULL;

	return format &&
	       (format->write == gpc_export_pprof || format->write == gpc_export_snapshot);
}

bool gpc_export_has_word(const struct gpc_options *options, const char *word)
{
	const char *text = format_of(options);

	while ((text = strchr(text, ','))) {
		text++;
		if (strcspn(text, ",") == strlen(word) && strncmp(text, word, strlen(word)) == 0)
			return true;
	}
	return false;
}

/* Only csv takes words and columns. */
static bool are_words_known(const struct gpc_options *options)
{
	static const char *const known[] = { "noheader", "nounits" };
	bool is_csv = find_format(options)->write == gpc_export_csv;
	const char *text = format_of(options);

	while ((text = strchr(text, ','))) {
		size_t len = strcspn(++text, ",");
		size_t i = 0;

		while (i < 2 && (strlen(known[i]) != len || strncmp(known[i], text, len) != 0))
			i++;
		if (i < 2 && is_csv)
			continue;
		return gpc_refuse(
			"--format=csv takes noheader and nounits, and no other format a word: `%s`",
			text);
	}
	if (options->query && !is_csv)
		gpc_complain("--query is of --format=csv");
	return !options->query || is_csv;
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
		gpc_complain("--format needs %s, not `%s`", text.buf, format_of(options));
	else
		gpc_complain("export needs --format=%s", text.buf);
	return false;
}

enum gpc_exit gpc_cmd_export(struct gpc_report *report)
{
	return find_format(report->options)->write(report);
}
