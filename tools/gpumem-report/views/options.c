/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `options`: the options of GPUCACHE_CONF, from the library's own table.  help:true prints the same, but only inside a
 * program that uses a GPU.
 */
#include "config/config.h"
#include "config/option.h"
#include "tools/gpumem-report/output/page.h"

enum gpc_exit gpc_cmd_options(struct gpc_report *report)
{
	static const struct gpc_column columns[] = { { "name" }, { "value" }, { "default" },
		{ "text" } };
	static const struct gpc_section section = { "options", NULL, GPC_COLUMNS(columns) };
	struct gpc_document *doc = report->doc;
	GPC_TEXT(text, GPC_CONFIG_HELP_SIZE);

	if (!gpc_document_is_whole(doc)) {
		gpc_config_help(&text);
		fputs(text.buf, report->out);
		return GPC_EXIT_MADE;
	}
	gpc_page_begin(report, "options");
	gpc_document_open(doc, &section);
	for (size_t i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];

		gpc_document_row(doc, gpc_name(row->name), gpc_name(gpc_option_hint(row)),
			gpc_name(row->default_text), gpc_name(row->help));
	}
	gpc_document_close(doc);
	gpc_document_end(doc);
	return GPC_EXIT_MADE;
}
