/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts by id, merges equal ids, sorts by bytes.  Bytes are rounded together, so that the rows add up as printed. */
#include "tools/gpumem-report/rows.h"

#include <stdlib.h>

#include "format/memory.h"

/* Narrower paper has no column of means. */
#define WIDTH_OF_MEAN 72

static int compare_ids(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static int compare_bytes(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	if (a->device == b->device && a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return compare_ids(left, right);
}

static void unite(struct gpc_row *into, const struct gpc_row *row)
{
	into->bytes = gpc_bytes_add(into->bytes, row->bytes);
	into->n_blocks = gpc_bytes_add(into->n_blocks, row->n_blocks);
	if (row->first_ns < into->first_ns)
		into->first_ns = row->first_ns;
	if (row->last_ns > into->last_ns)
		into->last_ns = row->last_ns;
}

size_t gpc_rows_unite(struct gpc_row *rows, size_t n)
{
	struct gpc_row *last = rows;

	qsort(rows, n, sizeof *rows, compare_ids);
	for (size_t i = 1; i < n; i++) {
		if (compare_ids(last, &rows[i]) == 0)
			unite(last, &rows[i]);
		else
			*++last = rows[i];
	}
	return n ? (size_t)(last - rows) + 1 : 0;
}

static int compare_texts(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->text != b->text)
		return a->text < b->text ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return compare_bytes(left, right);
}

size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n)
{
	struct gpc_row *last = rows;

	for (size_t i = 0; i < n; i++)
		rows[i].text = gpc_frames_hash(report->frames, rows[i].id);
	qsort(rows, n, sizeof *rows, compare_texts);
	for (size_t i = 1; i < n; i++) {
		if (last->device == rows[i].device && last->text == rows[i].text &&
			last->kind == rows[i].kind)
			unite(last, &rows[i]);
		else
			*++last = rows[i];
	}
	return n ? (size_t)(last - rows) + 1 : 0;
}

void gpc_rows_by_bytes(struct gpc_row *rows, size_t n)
{
	qsort(rows, n, sizeof *rows, compare_bytes);
}

void gpc_table_init(struct gpc_table *table, const struct gpc_paper *paper, size_t n)
{
	*table = (struct gpc_table){ .paper = paper, .rows = gpc_new(n, sizeof *table->rows) };
}

void gpc_table_fini(struct gpc_table *table)
{
	free(table->rows);
	*table = (struct gpc_table){ 0 };
}

void gpc_table_add(struct gpc_table *table, uint64_t bytes, uint64_t n_blocks)
{
	table->rows[table->n++] = (struct gpc_table_row){ .bytes = bytes, .n_blocks = n_blocks };
}

static void round_rows(struct gpc_table *table, uint64_t total)
{
	uint64_t *bytes = gpc_new(table->n, sizeof *bytes);
	uint32_t *shares = gpc_new(table->n, sizeof *shares);
	struct gpc_rounded *rounded = gpc_new(table->n, sizeof *rounded);

	for (size_t i = 0; i < table->n; i++)
		bytes[i] = table->rows[i].bytes;
	gpc_rounded_parts(gpc_rounded_of(total), bytes, table->n, rounded);
	gpc_rounded_shares(total, bytes, table->n, shares);
	for (size_t i = 0; i < table->n; i++) {
		table->rows[i].rounded = rounded[i];
		table->rows[i].share = shares[i];
	}
	free(bytes);
	free(shares);
	free(rounded);
}

void gpc_table_print_head(struct gpc_table *table, uint64_t total, const char *what)
{
	const struct gpc_paper *paper = table->paper;

	round_rows(table, total);
	fprintf(paper->out, "%s%12s %7s %9s ", gpc_paper_ink(paper, GPC_INK_DIM), "bytes", "share",
		"blocks");
	if (paper->width >= WIDTH_OF_MEAN)
		fprintf(paper->out, "%11s ", "mean");
	fprintf(paper->out, " %s%s\n", what, gpc_paper_ink(paper, GPC_INK_PLAIN));
}

int gpc_table_print_numbers(struct gpc_table *table)
{
	const struct gpc_table_row *row = &table->rows[table->next++];
	const struct gpc_paper *paper = table->paper;
	int used = fprintf(paper->out, "%12s %7s %9s ", gpc_show_rounded(row->rounded),
		gpc_show_tenths(row->share), row->n_blocks ? gpc_show_count(row->n_blocks) : "");

	if (paper->width >= WIDTH_OF_MEAN)
		used += fprintf(paper->out, "%11s ",
			row->n_blocks ? gpc_show_bytes(row->bytes / row->n_blocks) : "");
	return used + fprintf(paper->out, " ");
}

void gpc_table_print_rest(struct gpc_table *table)
{
	if (table->next == table->n)
		return;
	(void)gpc_table_print_numbers(table);
	fprintf(table->paper->out, "all others\n");
}
