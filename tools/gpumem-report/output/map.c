/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a key is a product: keys may be addresses, whose low bits are all zero. */
#include "tools/gpumem-report/output/map.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "tools/gpumem-report/symbols/short_names.h"

#define FIRST_ROWS 1024

/* Returns the row of the key, or the free row in which to store the key. */
static struct gpc_memo_row *row_of(const struct gpc_memo *memo, uint64_t key)
{
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (memo->n_rows - 1);

	while (memo->rows[i].key && memo->rows[i].key != key)
		i = (i + 1) & (memo->n_rows - 1);
	return &memo->rows[i];
}

static void grow(struct gpc_memo *memo)
{
	struct gpc_memo more = { .n_rows = memo->n_rows ? 2 * memo->n_rows : FIRST_ROWS,
		.n = memo->n };

	more.rows = gpc_new(more.n_rows, sizeof *more.rows);
	for (size_t i = 0; i < memo->n_rows; i++)
		if (memo->rows[i].key)
			*row_of(&more, memo->rows[i].key) = memo->rows[i];
	free(memo->rows);
	*memo = more;
}

uint64_t *gpc_memo_at(struct gpc_memo *memo, uint64_t key)
{
	struct gpc_memo_row *row;

	if (2 * (memo->n + 1) > memo->n_rows)
		grow(memo);
	row = row_of(memo, key);
	memo->n += !row->key;
	row->key = key;
	return &row->number;
}

uint64_t *gpc_memo_of(struct gpc_memo *memo, const char *text)
{
	uint64_t hash = gpc_hash_bytes(GPC_HASH_START, text, strlen(text));

	return gpc_memo_at(memo, hash ? hash : 1);
}

size_t gpc_memo_number(struct gpc_memo *memo, const char *text, bool *ret_is_new)
{
	uint64_t *number = gpc_memo_of(memo, text);

	*ret_is_new = !*number;
	if (!*number)
		*number = memo->n;
	return (size_t)*number - 1;
}

void gpc_memo_fini(struct gpc_memo *memo)
{
	free(memo->rows);
	*memo = (struct gpc_memo){ 0 };
}
