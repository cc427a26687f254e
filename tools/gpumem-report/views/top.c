/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `top`: the program's functions with the bytes of their own requests, and of these together with their callees'; then
 * the same bytes by thread and by stream.
 *
 *      own            with calls    blocks   function
 *      700.00 MiB     1.20 GiB         310   step  train.py
 *
 * The first column adds up.  The second does not: the bytes of a function count in the row of each of its callers.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "names/short_names.h"
#include "tools/gpumem-report/holders/by_thread.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/lib/map.h"

struct function {
	const char *name; /* within the path's name, up to `len` */
	size_t len;
	uint64_t own_bytes;
	uint64_t own_blocks;
	uint64_t total_bytes;
	size_t last_path; /* the last path that was added; SIZE_MAX: none */
};

struct functions {
	const struct gpc_paths *paths;
	struct function *rows;
	size_t n;
	struct gpc_map numbers; /* the index of a row, + 1, by the hash of its name */
};

static int compare_names(const struct function *a, const struct function *b)
{
	size_t len = a->len < b->len ? a->len : b->len;

	return memcmp(a->name, b->name, len) ?: GPC_ORDER(a->len, b->len);
}

static int compare_bytes(const void *left, const void *right)
{
	const struct function *a = left;
	const struct function *b = right;

	return GPC_ORDER(b->own_bytes, a->own_bytes) ?: GPC_ORDER(b->total_bytes, a->total_bytes)
		       ?: compare_names(a, b);
}

/* Adds name i of path `number`.  A function that the path has twice, by recursion, counts once. */
static void add(struct functions *functions, const struct gpc_path *path, size_t number, size_t i)
{
	const char *name = path->names[i];
	size_t len = gpc_path_function_length(name);
	uint64_t *known =
		gpc_map_at(&functions->numbers, gpc_hash_bytes(GPC_HASH_START, name, len) | 1);
	struct function *row = &functions->rows[*known ? *known - 1 : functions->n];

	if (!*known) {
		*row = (struct function){ .name = name, .len = len, .last_path = SIZE_MAX };
		*known = ++functions->n;
	}
	if (row->last_path != number)
		row->total_bytes = gpc_bytes_add(row->total_bytes, path->bytes);
	row->last_path = number;
	if (i != path->site)
		return;
	row->own_bytes = gpc_bytes_add(row->own_bytes, path->bytes);
	row->own_blocks = gpc_bytes_add(row->own_blocks, path->n_blocks);
}

static void functions_create(struct functions *functions, const struct gpc_paths *paths)
{
	size_t most = 0;

	for (size_t i = 0; i < paths->n; i++)
		most += paths->rows[i].n;
	*functions = (struct functions){ paths, .rows = gpc_new(most, sizeof *functions->rows) };
	for (size_t p = 0; p < paths->n; p++)
		for (size_t i = 0; i <= paths->rows[p].site && i < paths->rows[p].n; i++)
			add(functions, &paths->rows[p], p, i);
	gpc_map_fini(&functions->numbers);
	qsort(functions->rows, functions->n, sizeof *functions->rows, compare_bytes);
}

static const struct gpc_column columns[] = {
	{ "own_bytes", "own", 12, GPC_SUMS },
	{ NULL, "share", 7, GPC_SUMS },
	{ "inclusive_bytes", "with calls", 12 },
	{ "own_blocks", "blocks", 9, GPC_SUMS },
	{ "function", "function" },
};
static const struct gpc_section top = { "functions", "TOP", GPC_COLUMNS(columns), .n_rows = 12 };

static void show_functions(
	struct gpc_document *doc, const struct functions *functions, uint64_t total)
{
	for (size_t i = 0; i < functions->n; i++) {
		const struct function *row = &functions->rows[i];
		GPC_TEXT(name, 400);

		gpc_text_add(&name, "%.*s", (int)row->len, row->name);
		gpc_document_row(doc, gpc_bytes(row->own_bytes), gpc_share(row->own_bytes, total),
			gpc_bytes(row->total_bytes),
			gpc_count(row->own_bytes ? gpc_unless_zero(row->own_blocks) : 0),
			gpc_name(name.buf));
	}
	if (functions->paths->rest_bytes)
		gpc_document_others(doc, gpc_bytes(functions->paths->rest_bytes),
			gpc_share(functions->paths->rest_bytes, total), gpc_blank(), gpc_blank(),
			gpc_blank());
}

static void show_device(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment)
{
	struct gpc_document *doc = report->doc;
	struct gpc_paths paths;
	struct functions functions;
	GPC_TEXT(filters, 200);

	gpc_paths_create(&paths, report, moment);
	functions_create(&functions, &paths);
	gpc_filter_describe(report->options, &filters);
	gpc_document_member(doc, "live_bytes", gpc_bytes(paths.total_bytes));
	gpc_document_member(doc, "not_listed_bytes", gpc_bytes(paths.rest_bytes));
	gpc_document_open(doc, &top);
	gpc_document_say(doc, "GPU %d: %s live %s%s", moment->device,
		gpc_show_bytes(paths.total_bytes), gpc_moment_words(moment, report), filters.buf);
	show_functions(doc, &functions, paths.total_bytes);
	gpc_document_close(doc);
	if (moment->at == GPC_AT_END)
		gpc_asker_rows_show(report, device->ordinal, gpc_moment_words(moment, report));
	free(functions.rows);
	gpc_paths_fini(&paths);
}

enum gpc_exit gpc_cmd_top(struct gpc_report *report)
{
	return gpc_moment_view(report, "top", show_device);
}
