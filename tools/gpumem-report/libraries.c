/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frame whose module is not on the path to the driver names the library.  Rows are few, so the search by
 * name is linear.
 */
#include "tools/gpumem-report/libraries.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "model/libraries.h"
#include "tools/gpumem-report/json.h"

/* The path of the module that contains a call; NULL if none was recorded. */
static const char *module_of(const struct gpc_recording *recording, uint64_t call)
{
	struct gpc_module_view view;
	size_t number;

	return gpc_recording_find_module(recording, call, &number, &view) ? view.path : NULL;
}

static void add_name(const char *path, const struct gpc_library_row *row, struct gpc_text *ret_text)
{
	const char *package = gpc_library_package(path);
	const char *name = package ? package : gpc_base_name(path);

	if (row)
		gpc_text_add(ret_text, "%s", row->name);
	else
		gpc_text_add_clean(ret_text, name, strcspn(name, "/"));
}

void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text)
{
	struct gpc_stack_view view;

	if (stack == 0) {
		gpc_text_add(ret_text, "(no stack was taken)");
		return;
	}
	if (!gpc_recording_find_stack(recording, stack, &view)) {
		gpc_text_add(ret_text, "(its stack was not recorded)");
		return;
	}
	for (unsigned i = 0; i < view.n_native; i++) {
		const char *path = module_of(recording, view.native[i] - 1);
		const struct gpc_library_row *row = path ? gpc_library_row_of(path) : NULL;

		if (path && (!row || row->name)) {
			add_name(path, row, ret_text);
			return;
		}
	}
	gpc_text_add(ret_text, "(unknown)");
}

static int compare_bytes(const void *left, const void *right)
{
	const struct gpc_library *a = left;
	const struct gpc_library *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Finds or adds the row of that name. */
static struct gpc_library *find_row(struct gpc_libraries *libraries, const char *name)
{
	for (size_t i = 0; i < libraries->n; i++)
		if (strcmp(libraries->rows[i].name, name) == 0)
			return &libraries->rows[i];
	gpc_format(libraries->rows[libraries->n].name, sizeof libraries->rows->name, "%s", name);
	return &libraries->rows[libraries->n++];
}

void gpc_libraries_create(struct gpc_libraries *libraries, const struct gpc_report *report,
	const struct gpc_holdings *holdings)
{
	*libraries = (struct gpc_libraries){
		.rows = gpc_new(holdings->n + 2, sizeof *libraries->rows),
		.total_bytes = holdings->total_bytes,
	};
	for (size_t i = 0; i < holdings->n; i++) {
		char name[sizeof libraries->rows->name];
		struct gpc_text text = gpc_text_init(name, sizeof name);
		struct gpc_library *row;

		gpc_library_name(report->recording, holdings->rows[i].id, &text);
		row = find_row(libraries, name);
		row->bytes = gpc_bytes_add(row->bytes, holdings->rows[i].bytes);
		row->n_blocks = gpc_bytes_add(row->n_blocks, holdings->rows[i].n_blocks);
	}
	if (holdings->torch_bytes) {
		struct gpc_library *row = find_row(libraries, "PyTorch");

		row->bytes = gpc_bytes_add(row->bytes, holdings->torch_bytes);
	}
	if (holdings->rest_bytes)
		libraries->rows[libraries->n++] = (struct gpc_library){
			.name = "(not listed)",
			.bytes = holdings->rest_bytes,
		};
	qsort(libraries->rows, libraries->n, sizeof *libraries->rows, compare_bytes);
}

void gpc_libraries_fini(struct gpc_libraries *libraries)
{
	free(libraries->rows);
	*libraries = (struct gpc_libraries){ 0 };
}

void gpc_libraries_print(
	const struct gpc_libraries *libraries, const struct gpc_report *report, unsigned limit)
{
	const struct gpc_paper *paper = &report->paper;
	size_t shown = libraries->n < limit ? libraries->n : limit;
	struct gpc_table table;
	uint64_t rest = 0;

	if (libraries->n == 1 && libraries->rows[0].name[0] != '(')
		gpc_paper_section(
			paper, "LIBRARY", "all of it was asked for by %s", libraries->rows[0].name);
	if (libraries->n < 2)
		return;
	gpc_table_init(&table, paper, shown + 1);
	gpc_paper_section(paper, "LIBRARY", "the same %s by the library that asked for them",
		gpc_show_bytes(libraries->total_bytes));
	for (size_t i = 0; i < shown; i++)
		gpc_table_add(&table, libraries->rows[i].bytes, libraries->rows[i].n_blocks);
	for (size_t i = shown; i < libraries->n; i++)
		rest = gpc_bytes_add(rest, libraries->rows[i].bytes);
	if (rest)
		gpc_table_add(&table, rest, 0);
	gpc_table_print_head(&table, libraries->total_bytes, "library");
	for (size_t i = 0; i < shown; i++) {
		int room = paper->width - gpc_table_print_numbers(&table);

		fprintf(paper->out, "%.*s\n", room, libraries->rows[i].name);
	}
	gpc_table_print_rest(&table);
	gpc_table_fini(&table);
}

struct json_object *gpc_libraries_json(const struct gpc_libraries *libraries)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < libraries->n; i++) {
		const struct gpc_library *row = &libraries->rows[i];
		struct json_object *object = json_object_new_object();

		gpc_json_text(object, "library", row->name);
		gpc_json_bytes(object, "live_bytes", row->bytes);
		gpc_json_bytes(object, "blocks", row->n_blocks ? row->n_blocks : GPUCACHE_UNKNOWN);
		json_object_array_add(array, object);
	}
	return array;
}
