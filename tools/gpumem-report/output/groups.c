/* SPDX-License-Identifier: Apache-2.0 */
/* A memo finds the row of a name.  All bytes of a table are rounded together, so that they add up as printed. */
#include "tools/gpumem-report/output/groups.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/output/json.h"

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

/* Prints the columns before the name; n_blocks 0: unknown.  Returns how many columns it used. */
static int print_numbers(const struct gpc_paper *paper, struct gpc_rounded rounded, uint32_t share,
	uint64_t bytes, uint64_t n_blocks)
{
	int used = fprintf(paper->out, "%12s %7s %9s ", gpc_show_rounded(rounded),
		gpc_show_tenths(share), n_blocks ? gpc_show_count(n_blocks) : "");

	if (paper->width >= WIDTH_OF_MEAN)
		used += fprintf(
			paper->out, "%11s ", n_blocks ? gpc_show_bytes(bytes / n_blocks) : "");
	return used + fprintf(paper->out, " ");
}

static void print_rows(const struct gpc_groups *groups, const struct gpc_report *report,
	const struct gpc_rounded *rounded, const uint32_t *shares, size_t n, gpc_group_print print)
{
	const struct gpc_paper *paper = &report->paper;

	for (size_t i = 0; i < n; i++) {
		const struct gpc_group *row = &groups->rows[i];
		int used = print_numbers(paper, rounded[i], shares[i], row->bytes, row->n_blocks);

		if (print)
			print(report, row, used);
		else
			fprintf(paper->out, "%.*s\n", paper->width - used, row->name);
	}
}

void gpc_groups_print(const struct gpc_groups *groups, const struct gpc_report *report,
	size_t limit, const char *what, gpc_group_print print)
{
	const struct gpc_paper *paper = &report->paper;
	const bool has_mean = paper->width >= WIDTH_OF_MEAN;
	size_t n = groups->n < limit ? groups->n : limit;
	struct gpc_rounded *rounded = gpc_new(n + 1, sizeof *rounded);
	uint32_t *shares = gpc_new(n + 1, sizeof *shares);
	uint64_t *bytes = gpc_new(n + 1, sizeof *bytes); /* of the rows, then of the rest */

	bytes[n] = groups->rest_bytes;
	for (size_t i = 0; i < groups->n; i++)
		bytes[i < n ? i : n] = gpc_bytes_add(bytes[i < n ? i : n], groups->rows[i].bytes);
	gpc_rounded_parts(gpc_rounded_of(groups->total_bytes), bytes, n + 1, rounded);
	gpc_rounded_shares(groups->total_bytes, bytes, n + 1, shares);
	fprintf(paper->out, "%s%12s %7s %9s %*s%s %s%s\n", gpc_paper_ink(paper, GPC_INK_DIM),
		"bytes", "share", "blocks", has_mean ? 11 : 0, has_mean ? "mean" : "",
		has_mean ? " " : "", what, gpc_paper_ink(paper, GPC_INK_PLAIN));
	print_rows(groups, report, rounded, shares, n, print);
	if (bytes[n]) {
		(void)print_numbers(paper, rounded[n], shares[n], bytes[n], 0);
		fprintf(paper->out, "all others\n");
	}
	free(bytes);
	free(shares);
	free(rounded);
}

struct json_object *gpc_groups_json(const struct gpc_groups *groups, size_t limit, const char *key)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < groups->n && (!limit || i < limit); i++) {
		const struct gpc_group *row = &groups->rows[i];
		struct json_object *object = gpc_json_row(array);

		gpc_json_text(object, key, row->name);
		gpc_json_bytes(object, "live_bytes", row->bytes);
		gpc_json_bytes(object, "blocks", row->n_blocks ? row->n_blocks : GPUCACHE_UNKNOWN);
	}
	return array;
}
