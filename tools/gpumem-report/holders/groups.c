/* SPDX-License-Identifier: Apache-2.0 */
/* A map finds the row of a name. */
#include "tools/gpumem-report/holders/groups.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/output/page.h"

struct gpc_group *gpc_groups_add(struct gpc_groups *groups, const char *name, uint64_t bytes,
	uint64_t n_blocks, uint32_t stack)
{
	bool is_new;
	size_t number = gpc_map_number(&groups->numbers, name, &is_new);
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
	return row;
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
	gpc_map_fini(&groups->numbers);
	*groups = (struct gpc_groups){ 0 };
}

void gpc_groups_show(const struct gpc_groups *groups, struct gpc_document *doc)
{
	for (size_t i = 0; i < groups->n; i++) {
		const struct gpc_group *row = &groups->rows[i];

		gpc_document_row(doc,
			GPC_HOLDER_CELLS(row->bytes, groups->total_bytes, row->n_blocks),
			gpc_name(row->name));
	}
	gpc_groups_show_rest(groups, doc);
}

void gpc_groups_show_rest(const struct gpc_groups *groups, struct gpc_document *doc)
{
	if (groups->rest_bytes)
		gpc_document_others(doc,
			GPC_HOLDER_CELLS(groups->rest_bytes, groups->total_bytes, UINT64_C(0)));
}
