/* SPDX-License-Identifier: Apache-2.0 */
/* Walks model/balance_lines.def; what a line consists of follows it. */
#include "model/sheet.h"

#include "base/text.h"
#include "model/torch.h"

const struct gpc_column gpc_sheet_columns[4] = { { NULL, "", -1 }, { NULL, "", 12 },
	{ NULL, "", 8 }, { NULL, "" } };

static void show_line(struct gpc_document *doc, const struct gpc_sheet *sheet, const char *sign,
	uint64_t bytes, const char *words)
{
	gpc_document_row(doc, gpc_name(sign), gpc_bytes(bytes),
		gpc_share(bytes, sheet->balance->device_total), gpc_sentence(words));
}

/* A part of the line above. */
static void show_part(
	struct gpc_document *doc, const struct gpc_sheet *sheet, uint64_t bytes, const char *words)
{
	struct gpc_cell name = gpc_name(words);

	name.depth = 1;
	if (!doc->is_brief || bytes >= sheet->balance->device_total / 100)
		gpc_document_row(doc, gpc_blank(), gpc_bytes(bytes),
			gpc_share(bytes, sheet->balance->device_total), name);
}

static void show_kinds(struct gpc_document *doc, const struct gpc_sheet *sheet)
{
	static const struct gpc_column columns[] = { { NULL, "", -1 }, { "bytes", "", 12 },
		{ NULL, "", 8 }, { "kind", "" } };
	static const struct gpc_section kinds = { "direct_kinds", NULL, GPC_COLUMNS(columns),
		.n_brief = GPUCACHE_MAX_KINDS, .flags = GPC_BESIDE };
	unsigned kind = GPUCACHE_KIND_NONE;

	gpc_document_open(doc, &kinds);
	while ((kind = gpc_balance_next_kind(sheet->kind_bytes, kind)) != GPUCACHE_KIND_NONE)
		show_part(doc, sheet, sheet->kind_bytes[kind], gpc_kind_words(kind));
	gpc_document_close(doc);
}

static void show_torch(struct gpc_document *doc, const struct gpc_sheet *sheet, uint64_t of)
{
	const struct gpc_framework_words *words = gpc_framework_words(sheet->framework);
	uint64_t others = gpc_bytes_less(of, sheet->torch_reserved);
	GPC_TEXT(not_its, 32);

	gpc_text_add(&not_its, "not %s's", words->name);
	show_part(doc, sheet, gpc_bytes_less(sheet->torch_reserved, sheet->torch_unused),
		words->in_pieces);
	show_part(doc, sheet, sheet->torch_unused, words->unused);
	if (others && !doc->is_brief)
		show_part(doc, sheet, others, not_its.buf);
}

static void show_number(struct gpc_document *doc, const struct gpc_sheet *sheet,
	enum gpc_balance_line_number number)
{
	const struct gpc_balance_line *line = &gpc_balance_lines[number];
	const struct gpucache_balance *balance = sheet->balance;
	uint64_t bytes = gpc_balance_value(balance, line);
	bool is_free = number == GPC_BALANCE_LINE_device_free;
	GPC_TEXT(words, 100);

	gpc_document_member(doc, line->key, gpc_bytes(bytes));
	if ((!bytes && number && !is_free) || (doc->is_brief && bytes == GPUCACHE_UNKNOWN))
		return;
	gpc_text_add(&words, "%s", line->label);
	if (number == GPC_BALANCE_LINE_cached && balance->cached_largest != GPUCACHE_UNKNOWN)
		gpc_text_add_amounts(&words, ", largest piece @", balance->cached_largest);
	if (is_free && sheet->wanted > bytes)
		gpc_text_add_amounts(&words, ", @ wanted", sheet->wanted);
	show_line(doc, sheet, number ? "+" : "", bytes, words.buf);
}

static void show_lines(struct gpc_document *doc, const struct gpc_sheet *sheet, bool ours)
{
	/* With expandable segments PyTorch maps physical memory, and reserves more than it requested from our cache. */
	bool is_mapped = sheet->torch_reserved > sheet->balance->requested;

	for (unsigned i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		if (gpc_balance_lines[i].ours != ours)
			continue;
		show_number(doc, sheet, (enum gpc_balance_line_number)i);
		if (i == GPC_BALANCE_LINE_direct)
			show_kinds(doc, sheet);
		if (sheet->torch_reserved &&
			i == (is_mapped ? GPC_BALANCE_LINE_direct : GPC_BALANCE_LINE_requested))
			show_torch(doc, sheet,
				gpc_balance_value(sheet->balance, &gpc_balance_lines[i]));
	}
}

void gpc_sheet_show(struct gpc_document *doc, const struct gpc_sheet *sheet)
{
	const struct gpucache_balance *balance = sheet->balance;
	uint64_t spilled = sheet->kind_bytes[GPUCACHE_KIND_SPILLED];
	uint64_t sum = gpc_balance_sum(balance);
	GPC_TEXT(total, 100);

	show_lines(doc, sheet, true);
	if (!doc->is_brief)
		show_line(doc, sheet, "=", gpc_balance_taken(balance), "taken through gpucache");
	show_lines(doc, sheet, false);
	gpc_document_member(doc, "cached_largest_bytes", gpc_bytes(balance->cached_largest));
	gpc_document_member(doc, "total_bytes", gpc_bytes(balance->device_total));
	gpc_document_member(doc, "difference_bytes", gpc_change(sum, balance->device_total));
	gpc_text_add(&total, "all of the GPU");
	if (sum != balance->device_total && balance->device_total != GPUCACHE_UNKNOWN)
		gpc_text_add_amounts(&total,
			sum > balance->device_total ? ", which the lines pass by @"
						    : ", which the lines miss by @",
			gpc_distance(sum, balance->device_total));
	show_line(doc, sheet, "=", balance->device_total, total.buf);
	gpc_document_member(doc, "spilled_bytes", gpc_bytes(spilled));
	if (spilled)
		show_line(doc, sheet, "", spilled, "beyond it, spilled to host memory");
}
