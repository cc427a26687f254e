/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `options`: the options of GPUCACHE_CONF, from the library's own table.  help:true prints the same, but only inside a
 * program that uses a GPU.
 */
#include "config/config.h"
#include "config/option.h"
#include "tools/gpumem-report/output/json.h"

static void print_json(struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "options");
	struct json_object *array = gpc_json_add(root, "options", json_object_new_array());

	for (size_t i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];
		struct json_object *object = gpc_json_row(array);

		gpc_json_text(object, "name", row->name);
		gpc_json_text(object, "value", gpc_option_hint(row));
		gpc_json_text(object, "default", row->default_text);
		gpc_json_text(object, "text", row->help);
	}
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_options(struct gpc_report *report)
{
	GPC_TEXT(text, GPC_CONFIG_HELP_SIZE);

	if (report->options->json) {
		print_json(report);
		return GPC_EXIT_MADE;
	}
	gpc_config_help(&text);
	fputs(text.buf, report->paper.out);
	return GPC_EXIT_MADE;
}
