/* SPDX-License-Identifier: Apache-2.0 */
/* After sorting, rows that are to be merged are neighbours. */
#include "tools/gpumem-report/holders/holder_rows.h"

#include <stdlib.h>

#include "format/array.h"

static int compare_ids(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	return GPC_ORDER(a->device, b->device) ?: GPC_ORDER(a->id, b->id)
		       ?: GPC_ORDER(a->kind, b->kind);
}

static int compare_bytes(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	return GPC_ORDER(a->device, b->device) ?: GPC_ORDER(b->bytes, a->bytes)
		       ?: compare_ids(left, right);
}

static void unite(struct gpc_row *into, const struct gpc_row *row)
{
	into->bytes = gpc_bytes_add(into->bytes, row->bytes);
	into->n_blocks = gpc_bytes_add(into->n_blocks, row->n_blocks);
	into->first_ns = gpc_smaller(into->first_ns, row->first_ns);
	into->last_ns = gpc_larger(into->last_ns, row->last_ns);
}

/* Merges each run of rows with the same device, text and kind into its first row. */
static size_t unite_all(struct gpc_row *rows, size_t n)
{
	struct gpc_row *last = rows;

	for (size_t i = 1; i < n; i++) {
		if (last->device == rows[i].device && last->text == rows[i].text &&
			last->kind == rows[i].kind)
			unite(last, &rows[i]);
		else
			*++last = rows[i];
	}
	return n ? (size_t)(last - rows) + 1 : 0;
}

size_t gpc_rows_unite(struct gpc_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rows[i].text = rows[i].id;
	qsort(rows, n, sizeof *rows, compare_ids);
	return unite_all(rows, n);
}

static int compare_texts(const void *left, const void *right)
{
	const struct gpc_row *a = left;
	const struct gpc_row *b = right;

	return GPC_ORDER(a->device, b->device) ?: GPC_ORDER(a->text, b->text)
		       ?: GPC_ORDER(a->kind, b->kind)
		       ?: compare_bytes(left, right);
}

size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, rows[i].id);

		rows[i].text = stack ? stack->hash : rows[i].id;
	}
	qsort(rows, n, sizeof *rows, compare_texts);
	return unite_all(rows, n);
}

void gpc_rows_by_bytes(struct gpc_row *rows, size_t n)
{
	qsort(rows, n, sizeof *rows, compare_bytes);
}
