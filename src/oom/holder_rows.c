/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each holder is inserted into a short sorted array, or added to the row that has the same description.  There are at
 * most GPUCACHE_MAX_OOM_HOLDERS rows, so no heap is needed.
 */
#include "oom/holder_rows.h"

#include <string.h>

#include "base/bytes.h"

void gpc_site_describe(
	const struct gpc_describer *describer, uint32_t stack, bool has_via, char *buf, size_t size)
{
	buf[0] = '\0';
	if (stack != 0 && describer && describer->describe)
		describer->describe(describer->self, stack, has_via, buf, size);
	if (buf[0])
		return;
	if (stack != 0)
		gpc_format(buf, size, "stack %u", stack);
	else
		gpc_format(buf, size, "no stack");
}

static void unite(struct gpc_holder_row *into, const struct gpc_holder_row *row)
{
	into->bytes = gpc_bytes_add(into->bytes, row->bytes);
	into->n_blocks = gpc_bytes_add(into->n_blocks, row->n_blocks);
	into->growth = gpc_bytes_add(into->growth, row->growth);
	into->n_holders += row->n_holders;
	if (!into->oldest_ns || (row->oldest_ns && row->oldest_ns < into->oldest_ns))
		into->oldest_ns = row->oldest_ns;
}

/* Merges `added` into the row with its description, or inserts it; rows stay sorted by bytes.  Returns their number. */
static uint32_t add(struct gpc_holder_row *rows, uint32_t n, const struct gpc_holder_row *added)
{
	uint32_t i = 0;
	struct gpc_holder_row row;

	while (i < n && strcmp(rows[i].site, added->site) != 0)
		i++;
	row = *added;
	if (i < n) {
		row = rows[i];
		unite(&row, added);
	} else {
		n++;
	}
	for (; i > 0 && rows[i - 1].bytes < row.bytes; i--)
		rows[i] = rows[i - 1];
	rows[i] = row;
	return n;
}

uint32_t gpc_holder_rows_fill(struct gpc_holder_row *rows, const struct gpucache_holder *holders,
	uint32_t n, const struct gpc_describer *describer, size_t site_size)
{
	uint32_t n_rows = 0;

	if (site_size > GPC_HOLDER_SITE_SIZE)
		site_size = GPC_HOLDER_SITE_SIZE;
	for (uint32_t i = 0; i < n && i < GPUCACHE_MAX_OOM_HOLDERS; i++) {
		struct gpc_holder_row row = { .stack = holders[i].stack,
			.bytes = holders[i].bytes,
			.n_blocks = holders[i].n_blocks,
			.n_holders = 1 };

		gpc_site_describe(describer, holders[i].stack, false, row.site, site_size);
		if (describer && describer->history)
			describer->history(
				describer->self, holders[i].stack, &row.oldest_ns, &row.growth);
		n_rows = add(rows, n_rows, &row);
	}
	for (uint32_t i = 0; i < n_rows; i++)
		if (rows[i].n_holders == 1)
			gpc_site_describe(describer, rows[i].stack, true, rows[i].site, site_size);
	return n_rows;
}

static void add_row(struct gpc_text *text, const struct gpc_holder_row *row, uint64_t now_ns)
{
	GPC_TEXT(field, 40);

	gpc_text_add_bytes(&field, row->bytes);
	gpc_text_add(text, "%13s %9llu", field.buf, (unsigned long long)row->n_blocks);
	gpc_text_clear(&field);
	if (row->oldest_ns)
		gpc_text_add_age(&field, gpc_bytes_less(now_ns, row->oldest_ns));
	gpc_text_add(text, " %7s", field.buf);
	gpc_text_clear(&field);
	if (row->growth)
		gpc_text_add_amounts(&field, "+@", row->growth);
	gpc_text_add(text, " %13s  %s\n", field.buf, row->site);
}

void gpc_holder_rows_write(struct gpc_text *text, const struct gpc_holder_row *rows, uint32_t n,
	uint32_t max, uint64_t total, uint64_t now_ns)
{
	struct gpc_holder_row others = { .site = "others" };
	uint64_t shown_bytes = 0;
	uint32_t shown = n < max ? n : max;

	for (uint32_t i = 0; i < shown; i++)
		shown_bytes = gpc_bytes_add(shown_bytes, rows[i].bytes);
	for (uint32_t i = shown; i < n; i++)
		unite(&others, &rows[i]);
	others.bytes = gpc_bytes_less(total, shown_bytes);
	gpc_text_add(text, "%13s %9s %7s %13s  %s\n", "bytes", "blocks", "oldest", "growth",
		"call site");
	for (uint32_t i = 0; i < shown; i++)
		add_row(text, &rows[i], now_ns);
	if (others.bytes)
		add_row(text, &others, now_ns);
}
