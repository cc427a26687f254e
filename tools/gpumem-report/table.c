/* SPDX-License-Identifier: Apache-2.0 */
/* Names are found again in a hash.  Bytes are rounded together, so that the rows add up as printed. */
#include "tools/gpumem-report/table.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"

/* Narrower output omits the column of means. */
#define WIDTH_OF_MEAN 72

void gpc_groups_add(struct gpc_groups *groups, const char *name, uint64_t bytes, uint64_t n_blocks,
	uint32_t stack)
{
	bool is_new;
	size_t number = gpc_memo_number(&groups->numbers, name, &is_new);
	struct gpc_group *row;

	if (is_new) {
		gpc_array_grow(&groups->rows, sizeof *row, groups->n, &groups->room);
		groups->rows[groups->n++] = (struct gpc_group){
			.name = gpc_copy(name), .stack = stack, .stack_bytes = bytes
		};
	}
	row = &groups->rows[number];
	row->bytes = gpc_bytes_add(row->bytes, bytes);
	row->n_blocks = gpc_bytes_add(row->n_blocks, n_blocks);
	if (bytes > row->stack_bytes || (bytes == row->stack_bytes && stack < row->stack)) {
		row->stack = stack;
		row->stack_bytes = bytes;
	}
}

static int compare_bytes(const void *left, const void *right)
{
	const struct gpc_group *a = left;
	const struct gpc_group *b = right;

	return GPC_ORDER(b->bytes, a->bytes) ?: strcmp(a->name, b->name);
}

void gpc_groups_sort(struct gpc_groups *groups)
{
	if (groups->n)
		qsort(groups->rows, groups->n, sizeof *groups->rows, compare_bytes);
}

void gpc_groups_fini(struct gpc_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		free(groups->rows[i].name);
	free(groups->rows);
	gpc_memo_fini(&groups->numbers);
	*groups = (struct gpc_groups){ 0 };
}

void gpc_groups_print(const struct gpc_groups *groups, const struct gpc_paper *paper, size_t limit,
	const char *what, gpc_group_print print)
{
	struct gpc_table table;

	gpc_table_init(&table, paper, groups->n, limit);
	for (size_t i = 0; i < groups->n; i++)
		gpc_table_add(&table, groups->rows[i].bytes, groups->rows[i].n_blocks);
	gpc_table_add_rest(&table, groups->rest_bytes);
	gpc_table_begin(&table, groups->total_bytes, what);
	for (size_t i = 0; i < table.n; i++)
		print(paper, groups->rows[i].name, gpc_table_print_numbers(&table));
	gpc_table_end(&table);
}

void gpc_table_init(struct gpc_table *table, const struct gpc_paper *paper, size_t n, size_t limit)
{
	*table = (struct gpc_table){
		.paper = paper,
		.rows = gpc_new((n < limit ? n : limit) + 1, sizeof *table->rows),
		.limit = limit,
	};
}

void gpc_table_add(struct gpc_table *table, uint64_t bytes, uint64_t n_blocks)
{
	if (table->n < table->limit)
		table->rows[table->n++] =
			(struct gpc_table_row){ .bytes = bytes, .n_blocks = n_blocks };
	else
		gpc_table_add_rest(table, bytes);
}

void gpc_table_add_rest(struct gpc_table *table, uint64_t bytes)
{
	table->rest_bytes = gpc_bytes_add(table->rest_bytes, bytes);
}

/* Rounds the rows and, as the last number, the rest, so that they add up to the total. */
static void round_rows(struct gpc_table *table, uint64_t total)
{
	size_t n = table->n + 1;
	uint64_t *bytes = gpc_new(n, sizeof *bytes);
	uint32_t *shares = gpc_new(n, sizeof *shares);
	struct gpc_rounded *rounded = gpc_new(n, sizeof *rounded);

	table->rows[table->n].bytes = table->rest_bytes;
	for (size_t i = 0; i < n; i++)
		bytes[i] = table->rows[i].bytes;
	gpc_rounded_parts(gpc_rounded_of(total), bytes, n, rounded);
	gpc_rounded_shares(total, bytes, n, shares);
	for (size_t i = 0; i < n; i++) {
		table->rows[i].rounded = rounded[i];
		table->rows[i].share = shares[i];
	}
	free(bytes);
	free(shares);
	free(rounded);
}

void gpc_table_begin(struct gpc_table *table, uint64_t total, const char *what)
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

void gpc_table_end(struct gpc_table *table)
{
	if (table->rest_bytes) {
		(void)gpc_table_print_numbers(table);
		fprintf(table->paper->out, "all others\n");
	}
	free(table->rows);
	*table = (struct gpc_table){ 0 };
}
