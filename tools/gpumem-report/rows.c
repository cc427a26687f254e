/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/rows.h"

#include <stdlib.h>

static int compare_ids(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static int compare_bytes(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return compare_ids(left, right);
}

size_t gpc_rows_unite(struct gpc_row *rows, size_t n)
{
	struct gpc_row *last = rows;

	qsort(rows, n, sizeof *rows, compare_ids);
	for (size_t i = 1; i < n; i++) {
		const struct gpc_row *row = &rows[i];

		if (compare_ids(last, row) != 0) {
			*++last = *row;
			continue;
		}
		last->bytes = gpc_bytes_add(last->bytes, row->bytes);
		last->n_blocks += row->n_blocks;
		if (row->first_ns < last->first_ns)
			last->first_ns = row->first_ns;
		if (row->last_ns > last->last_ns)
			last->last_ns = row->last_ns;
	}
	return n ? (size_t)(last - rows) + 1 : 0;
}

void gpc_rows_by_bytes(struct gpc_row *rows, size_t n)
{
	qsort(rows, n, sizeof *rows, compare_bytes);
}

void gpc_rows_print_head(const struct gpc_paper *paper, const char *what)
{
	fprintf(paper->out, "%s%12s %7s %9s %11s  %s%s\n", gpc_paper_ink(paper, GPC_INK_DIM),
		"bytes", "share", "blocks", "mean", what, gpc_paper_ink(paper, GPC_INK_PLAIN));
}

int gpc_rows_print(const struct gpc_paper *paper, uint64_t bytes, uint64_t n_blocks, uint64_t total)
{
	return fprintf(paper->out, "%12s %7s %9s %11s  ", gpc_show_bytes(bytes),
		gpc_show_share(bytes, total), n_blocks ? gpc_show_count(n_blocks) : "",
		n_blocks ? gpc_show_bytes(bytes / n_blocks) : "");
}

void gpc_rows_print_rest(const struct gpc_paper *paper, uint64_t bytes, uint64_t total)
{
	if (!bytes)
		return;
	(void)gpc_rows_print(paper, bytes, 0, total);
	fprintf(paper->out, "all others\n");
}
