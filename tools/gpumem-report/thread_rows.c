/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the live blocks, sorted and united by thread. */
#include "tools/gpumem-report/thread_rows.h"

#include <stdlib.h>

#include "tools/gpumem-report/json.h"

#define DEFAULT_ROWS 10u

/* The rows of a device, one a thread, biggest first; the caller frees them.  NULL: no memory. */
static struct gpc_row *make_rows(const struct gpc_report *report, int32_t ordinal, size_t *ret_n)
{
	uint64_t room = report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_row *rows = calloc(room + 1, sizeof *rows);
	struct gpucache_block block;
	size_t n = 0;

	if (!rows) {
		gpc_complain("no memory for the table of threads");
		return NULL;
	}
	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);)
		if (gpc_recording_can_leak(&block))
			rows[n++] = (struct gpc_row){
				.id = block.thread, .bytes = block.requested, .n_blocks = 1
			};
	*ret_n = gpc_rows_unite(rows, n);
	gpc_rows_by_bytes(rows, *ret_n);
	return rows;
}

static void print_rows(
	const struct gpc_report *report, const struct gpc_row *rows, size_t n, uint64_t total)
{
	const struct gpc_paper *paper = &report->paper;
	size_t limit = report->options->limit ? report->options->limit : DEFAULT_ROWS;
	size_t shown = n < limit ? n : limit;
	uint64_t rest = 0;
	struct gpc_table table;

	if (!gpc_table_init(&table, paper, shown + 1))
		return;
	for (size_t i = 0; i < shown; i++)
		gpc_table_add(&table, rows[i].bytes, rows[i].n_blocks);
	for (size_t i = shown; i < n; i++)
		rest = gpc_bytes_add(rest, rows[i].bytes);
	if (rest)
		gpc_table_add(&table, rest, 0);
	gpc_table_print_head(&table, total, "thread");
	for (size_t i = 0; i < shown; i++) {
		(void)gpc_table_print_numbers(&table);
		fprintf(paper->out, "%u%s\n", rows[i].id,
			rows[i].id == report->recording->header.pid ? " (main)" : "");
	}
	gpc_table_print_rest(&table);
	gpc_table_fini(&table);
}

void gpc_thread_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment)
{
	size_t n;
	uint64_t total = 0;
	struct gpc_row *rows = make_rows(report, ordinal, &n);

	for (size_t i = 0; rows && i < n; i++)
		total = gpc_bytes_add(total, rows[i].bytes);
	if (rows && n > 1) {
		gpc_paper_section(&report->paper, "THREADS",
			"%s live by the thread that asked for it, %s", gpc_show_bytes(total),
			moment);
		print_rows(report, rows, n, total);
	}
	free(rows);
}

void gpc_thread_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal)
{
	struct json_object *array = json_object_new_array();
	unsigned limit = report->options->limit;
	size_t n;
	struct gpc_row *rows = make_rows(report, ordinal, &n);

	for (size_t i = 0; rows && i < n && (!limit || i < limit); i++) {
		struct json_object *row = json_object_new_object();

		gpc_json_bytes(row, "thread", rows[i].id);
		gpc_json_bytes(row, "live_bytes", rows[i].bytes);
		gpc_json_bytes(row, "blocks", rows[i].n_blocks);
		json_object_array_add(array, row);
	}
	free(rows);
	json_object_object_add(object, "threads", array);
}
