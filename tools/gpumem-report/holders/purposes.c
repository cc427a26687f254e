/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up holdings by the purpose of their stacks, and makes a row for each purpose. */
#include "tools/gpumem-report/holders/purposes.h"

#include "why/purposes.h"

uint64_t gpc_purposes_sum(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct gpc_purpose_row rows[GPC_N_PURPOSES])
{
	gpc_purpose_rows_init(rows);
	for (size_t i = 0; i < holdings->n; i++) {
		const struct gpc_row *holding = &holdings->rows[i];

		if (!holding->kind)
			gpc_purpose_rows_add(rows,
				gpc_purpose_of(gpc_frames_find(report->frames, holding->id)),
				&(struct gpc_purpose_share){
					holding->id, holding->bytes, holding->n_blocks });
	}
	return gpc_purpose_rows_sort(rows);
}

void gpc_purposes_show(const struct gpc_holdings *holdings, const struct gpc_report *report)
{
	static const struct gpc_column columns[] = {
		{ "live_bytes", "bytes", 12, GPC_SUMS },
		{ NULL, "share", 7, GPC_SUMS },
		{ "blocks", "blocks", 9, GPC_SUMS, .from = 72 },
		{ "category", "category", -15 },
		{ "biggest", "biggest" },
		{ "biggest_bytes" },
	};
	static const struct gpc_section section = { "categories", "CATEGORY", GPC_COLUMNS(columns),
		GPC_N_PURPOSES };
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	struct gpc_document *doc = report->doc;
	uint64_t total = 0;

	gpc_document_open(doc, &section);
	if (holdings->has_torch)
		total = gpc_purposes_sum(holdings, report, rows);
	if (total) {
		total = gpc_bytes_add(total, holdings->rest_bytes);
		gpc_document_say(
			doc, "what %s are for, and the biggest of each", gpc_show_bytes(total));
	}
	for (unsigned i = 0; total && i < GPC_N_PURPOSES && rows[i].bytes; i++) {
		GPC_TEXT(site, 400);

		gpc_frames_site(report->frames, rows[i].stack, &site);
		gpc_document_row(doc, gpc_bytes(rows[i].bytes), gpc_share(rows[i].bytes, total),
			gpc_count(rows[i].n_blocks), gpc_name(gpc_purpose_words(rows[i].purpose)),
			gpc_sentence(site.buf), gpc_bytes(rows[i].stack_bytes));
	}
	if (total && holdings->rest_bytes)
		gpc_document_others(doc, gpc_bytes(holdings->rest_bytes),
			gpc_share(holdings->rest_bytes, total));
	gpc_document_close(doc);
}
