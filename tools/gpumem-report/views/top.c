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
#include "tools/gpumem-report/holders/by_thread.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/output/map.h"
#include "tools/gpumem-report/symbols/short_names.h"

#define DEFAULT_ROWS 12

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
	struct gpc_memo numbers; /* the index of a row, + 1, by the hash of its name */
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
		gpc_memo_at(&functions->numbers, gpc_hash_bytes(GPC_HASH_START, name, len) | 1);
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
	gpc_memo_fini(&functions->numbers);
	qsort(functions->rows, functions->n, sizeof *functions->rows, compare_bytes);
}

static void print_functions(const struct gpc_report *report, const struct functions *functions,
	const struct gpc_moment *moment)
{
	size_t limit = gpc_report_limit(report, DEFAULT_ROWS);
	size_t shown = functions->n < limit ? functions->n : limit;
	uint64_t total = functions->paths->total_bytes;
	const struct gpc_paper *paper = &report->paper;
	struct gpc_rounded *rounded = gpc_new(shown + 1, sizeof *rounded);
	uint32_t *shares = gpc_new(shown + 1, sizeof *shares);
	uint64_t *own = gpc_new(shown + 1, sizeof *own);
	GPC_TEXT(filters, 200);

	gpc_filter_describe(report->options, &filters);
	gpc_paper_section(paper, "TOP", "GPU %d: %s live %s%s", moment->device,
		gpc_show_bytes(total), gpc_moment_words(moment, report), filters.buf);
	own[shown] = functions->paths->rest_bytes;
	for (size_t i = 0; i < functions->n; i++)
		own[i < shown ? i : shown] += functions->rows[i].own_bytes;
	gpc_rounded_parts(gpc_rounded_of(total), own, shown + 1, rounded);
	gpc_rounded_shares(total, own, shown + 1, shares);
	if (total)
		fprintf(paper->out, "%s%12s %7s %12s %9s  %s%s\n",
			gpc_paper_ink(paper, GPC_INK_DIM), "own", "share", "with calls", "blocks",
			"function", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; total && i < shown; i++) {
		const struct function *row = &functions->rows[i];
		int used = fprintf(paper->out, "%12s %7s %12s %9s  ", gpc_show_rounded(rounded[i]),
			gpc_show_tenths(shares[i]), gpc_show_bytes(row->total_bytes),
			row->own_blocks ? gpc_show_count(row->own_blocks) : "");
		int room = paper->width - used;

		fprintf(paper->out, "%.*s\n", (int)row->len < room ? (int)row->len : room,
			row->name);
	}
	if (own[shown])
		fprintf(paper->out, "%12s %7s %12s %9s  all others\n",
			gpc_show_rounded(rounded[shown]), gpc_show_tenths(shares[shown]), "", "");
	free(rounded);
	free(shares);
	free(own);
}

static void add_functions(struct json_object *parent, const struct functions *functions)
{
	struct json_object *array = gpc_json_add(parent, "functions", json_object_new_array());

	for (size_t i = 0; i < functions->n; i++) {
		const struct function *row = &functions->rows[i];
		struct json_object *object = gpc_json_row(array);

		json_object_object_add(
			object, "function", json_object_new_string_len(row->name, (int)row->len));
		gpc_json_bytes(object, "own_bytes", row->own_bytes);
		gpc_json_bytes(object, "own_blocks", row->own_blocks);
		gpc_json_bytes(object, "inclusive_bytes", row->total_bytes);
	}
}

static void show_device(struct gpc_report *report, struct json_object *object,
	const struct gpucache_device *device, const struct gpc_moment *moment)
{
	struct gpc_paths paths;
	struct functions functions;

	gpc_paths_create(&paths, report, moment);
	functions_create(&functions, &paths);
	if (object) {
		gpc_json_text(object, "moment", gpc_moment_key(moment, report));
		gpc_json_bytes(object, "live_bytes", paths.total_bytes);
		add_functions(object, &functions);
		if (moment->at == GPC_AT_END)
			gpc_asker_rows_json(object, report, device->ordinal);
	} else {
		print_functions(report, &functions, moment);
		if (moment->at == GPC_AT_END)
			gpc_asker_rows_print(
				report, device->ordinal, gpc_moment_words(moment, report));
	}
	free(functions.rows);
	gpc_paths_fini(&paths);
}

enum gpc_exit gpc_cmd_top(struct gpc_report *report)
{
	return gpc_moment_view(report, "top", show_device);
}
