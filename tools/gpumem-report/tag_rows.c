/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/tag_rows.h"

#include <stdlib.h>

#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/sheet.h"

/* Rows of the table; `-n` shows more. */
#define DEFAULT_ROWS 5

/* A path of 32 names of 76 bytes, and what is longer is cut. */
#define LABEL_SIZE 2560

static void add_live(struct gpc_tag_rows *rows, const struct gpc_report *report, int32_t ordinal)
{
	struct gpucache_block block;

	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);)
		if (gpc_recording_can_leak(&block))
			rows->rows[rows->n++] = (struct gpc_row){
				.id = block.tag, .bytes = block.requested, .n_blocks = 1
			};
}

static void add_oom(struct gpc_tag_rows *rows, const struct gpucache_oom *oom)
{
	for (; rows->n < oom->n_tags; rows->n++)
		rows->rows[rows->n] = (struct gpc_row){
			.id = oom->tags[rows->n].tag,
			.bytes = oom->tags[rows->n].bytes,
			.n_blocks = oom->tags[rows->n].n_blocks,
		};
	rows->rest_bytes = oom->tag_rest_bytes;
}

enum gpc_status gpc_tag_rows_init(struct gpc_tag_rows *rows, const struct gpc_report *report,
	int32_t ordinal, const struct gpucache_oom *oom)
{
	uint64_t room =
		oom ? oom->n_tags : report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	bool has_tag = false;

	*rows = (struct gpc_tag_rows){ .rows = calloc(room + 1, sizeof *rows->rows) };
	if (!rows->rows)
		return GPC_NO_METADATA;
	if (oom)
		add_oom(rows, oom);
	else
		add_live(rows, report, ordinal);
	rows->n = gpc_rows_unite(rows->rows, rows->n);
	gpc_rows_by_bytes(rows->rows, rows->n);
	rows->total_bytes = rows->rest_bytes;
	for (size_t i = 0; i < rows->n; i++) {
		rows->total_bytes = gpc_bytes_add(rows->total_bytes, rows->rows[i].bytes);
		has_tag |= rows->rows[i].id != 0;
	}
	if (!has_tag)
		rows->n = 0;
	return GPC_OK;
}

void gpc_tag_rows_fini(struct gpc_tag_rows *rows)
{
	free(rows->rows);
	*rows = (struct gpc_tag_rows){ 0 };
}

/* A label as wide as the rest of the line: what is cut is its beginning, for the end says most. */
static void print_label(const struct gpc_report *report, uint32_t tag, int used)
{
	const struct gpc_paper *paper = &report->paper;
	size_t room = (size_t)(paper->width - used);
	char buf[LABEL_SIZE];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	size_t at;

	if (tag)
		gpc_recording_add_tag(report->recording, tag, &text);
	else
		gpc_text_add(&text, "(in no range)");
	at = text.len > room ? text.len - (room - 2) : 0;
	while (((unsigned char)buf[at] & 0xc0) == 0x80)
		at++;
	fprintf(paper->out, "%s%s\n", at ? ".." : "", buf + at);
}

static void print_rows(const struct gpc_tag_rows *rows, const struct gpc_report *report)
{
	size_t limit = report->options->limit ? report->options->limit : DEFAULT_ROWS;
	size_t shown = rows->n < limit ? rows->n : limit;
	uint64_t rest = rows->rest_bytes;
	struct gpc_table table;

	if (!gpc_table_init(&table, &report->paper, shown + 1))
		return;
	for (size_t i = 0; i < shown; i++)
		gpc_table_add(&table, rows->rows[i].bytes, rows->rows[i].n_blocks);
	for (size_t i = shown; i < rows->n; i++)
		rest = gpc_bytes_add(rest, rows->rows[i].bytes);
	if (rest)
		gpc_table_add(&table, rest, 0);
	gpc_table_print_head(&table, rows->total_bytes, "range");
	for (size_t i = 0; i < shown; i++)
		print_label(report, rows->rows[i].id, gpc_table_print_numbers(&table));
	gpc_table_print_rest(&table);
	gpc_table_fini(&table);
}

void gpc_tag_rows_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment)
{
	struct gpc_tag_rows rows;

	if (gpc_tag_rows_init(&rows, report, ordinal, oom) != GPC_OK) {
		gpc_complain("no memory for the table of ranges");
		return;
	}
	if (rows.n) {
		gpc_paper_section(&report->paper, "TAGS", "%s live by the program's ranges, %s",
			gpc_show_bytes(rows.total_bytes), moment);
		print_rows(&rows, report);
	}
	gpc_tag_rows_fini(&rows);
}

void gpc_tag_rows_json(struct json_object *object, const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom)
{
	struct json_object *array = json_object_new_array();
	struct gpc_tag_rows rows;
	size_t shown;

	json_object_object_add(object, "tags", array);
	if (gpc_tag_rows_init(&rows, report, ordinal, oom) != GPC_OK)
		return;
	shown = report->options->limit && report->options->limit < rows.n ? report->options->limit
									  : rows.n;
	for (size_t i = 0; i < shown; i++) {
		struct json_object *row = json_object_new_object();
		char buf[LABEL_SIZE];
		struct gpc_text text = gpc_text_init(buf, sizeof buf);

		gpc_recording_add_tag(report->recording, rows.rows[i].id, &text);
		gpc_json_text(row, "tag", buf);
		gpc_json_bytes(row, "live_bytes", rows.rows[i].bytes);
		gpc_json_bytes(row, "blocks", rows.rows[i].n_blocks);
		json_object_array_add(array, row);
	}
	gpc_tag_rows_fini(&rows);
}
