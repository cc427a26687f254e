/* SPDX-License-Identifier: Apache-2.0 */
/* A row per live block, or per entry of a failure's or peak's list; rows of the same stack are merged.  O(n log n). */
#include "tools/gpumem-report/holders/holdings.h"

#include <stdlib.h>

#include "format/memory.h"
#include "format/sheet.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/holders/call_sites.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/output/page.h"

/* Adds the rows to total_bytes, and merges rows of the same stack and kind. */
static void unite(struct gpc_holdings *holdings)
{
	for (size_t i = 0; i < holdings->n; i++)
		holdings->total_bytes =
			gpc_bytes_add(holdings->total_bytes, holdings->rows[i].bytes);
	holdings->n = gpc_rows_unite(holdings->rows, holdings->n);
}

static uint32_t kind_of(const struct gpucache_block *block)
{
	return gpc_kind_is_implicit(block->kind) ? block->kind : GPUCACHE_KIND_NONE;
}

/* Adds a row for each kind of memory that the driver took for itself.  A list does not say where in the program that was. */
static void add_implicit(
	struct gpc_holdings *holdings, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	for (uint32_t kind = 0; kind < GPUCACHE_KIND_COUNT; kind++)
		if (gpc_kind_is_implicit(kind) && kind_bytes[kind])
			holdings->rows[holdings->n++] =
				(struct gpc_row){ .kind = kind, .bytes = kind_bytes[kind] };
}

/* With filters: drops rows that they do not take, and bytes without stacks, where there is nothing to test. */
static void filter_list(struct gpc_holdings *holdings, const struct gpc_report *report,
	const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	size_t n = 0;

	if (!gpc_filter_is_set(report->options)) {
		add_implicit(holdings, kind_bytes);
		return;
	}
	for (size_t i = 0; i < holdings->n; i++)
		if (gpc_filter_takes_stack(report, holdings->rows[i].id))
			holdings->rows[n++] = holdings->rows[i];
	holdings->n = n;
	holdings->rest_bytes = 0;
	holdings->torch_bytes = 0;
	holdings->refused_bytes = 0;
	holdings->total_bytes = 0;
}

/* Makes a row of each listed holder, and returns the sum of their bytes; total_bytes does not include it yet. */
static uint64_t read_list(struct gpc_holdings *holdings, const struct gpucache_holder *list,
	size_t n, uint64_t rest_bytes)
{
	uint64_t listed = 0;

	*holdings = (struct gpc_holdings){
		.rows = gpc_new(n + GPUCACHE_KIND_COUNT, sizeof *holdings->rows),
		.n = n,
		.rest_bytes = rest_bytes,
		.total_bytes = rest_bytes,
	};
	for (size_t i = 0; i < n; i++) {
		holdings->rows[i] = (struct gpc_row){
			.id = list[i].stack,
			.bytes = list[i].bytes,
			.n_blocks = list[i].n_blocks,
		};
		listed = gpc_bytes_add(listed, list[i].bytes);
	}
	return listed;
}

void gpc_holdings_from_oom(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpucache_oom *oom)
{
	(void)read_list(holdings, oom->holders, oom->n_holders, oom->rest_bytes);
	/* The failure has PyTorch's sums as of its last tensor; PyTorch may have returned memory since then. */
	holdings->torch_bytes = gpc_smaller(gpc_torch_at(oom).unused, holdings->rest_bytes);
	holdings->framework = oom->framework;
	holdings->has_torch =
		oom->torch.reserved || gpc_torch_now(report, oom->device).reserved != 0;
	holdings->refused_bytes = gpc_smaller(oom->kind_bytes[GPUCACHE_KIND_REFUSED],
		holdings->rest_bytes - holdings->torch_bytes);
	holdings->rest_bytes = gpc_oom_unlisted(oom);
	filter_list(holdings, report, oom->kind_bytes);
	unite(holdings);
}

void gpc_holdings_from_peak(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpucache_peak *peak)
{
	const uint64_t listed =
		read_list(holdings, peak->holders, peak->n_holders, peak->rest_bytes);
	const uint64_t most = gpc_bytes_less(
		peak->requested_bytes, gpc_bytes_add(listed, gpc_implicit_bytes(peak->kind_bytes)));

	/*
	 * The rest of a peak includes the framework's bytes in no tensor, which no call site requested.  XLA's pool is named;
	 * PyTorch's cache is left out, because it is given back when memory is short.
	 */
	holdings->has_torch = gpc_torch_is_there(report, peak->device);
	holdings->framework = gpc_torch_now(report, peak->device).framework;
	if (holdings->rest_bytes > most && holdings->has_torch) {
		if (holdings->framework == GPUCACHE_FRAMEWORK_XLA)
			holdings->torch_bytes = holdings->rest_bytes - most;
		else
			holdings->total_bytes = most;
		holdings->rest_bytes = most;
	}
	filter_list(holdings, report, peak->kind_bytes);
	unite(holdings);
}

void gpc_holdings_at(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpc_moment *moment)
{
	*holdings = (struct gpc_holdings){ 0 };
	if (!moment->is_there)
		return;
	if (moment->at == GPC_AT_OOM)
		gpc_holdings_from_oom(holdings, report, &moment->oom);
	else if (moment->at == GPC_AT_PEAK)
		gpc_holdings_from_peak(holdings, report, &moment->peak);
	else
		gpc_holdings_from_live(holdings, report, moment->device);
}

/*
 * With sampled stacks, the row of a stack includes an estimate for blocks without a stack.  The row without a stack has
 * these blocks, too: subtracts the estimate there, on each GPU.
 */
static void take_surplus(struct gpc_holdings *holdings, const struct gpc_share *surplus)
{
	struct gpc_row *rows = holdings->rows;
	size_t n = 0;

	for (size_t i = 0; i < holdings->n; i++) {
		struct gpc_row row = rows[i];

		if (!row.id && !row.kind) {
			const struct gpc_share *more =
				&surplus[(uint32_t)row.device % GPUCACHE_MAX_DEVICES];
			uint64_t bytes = gpc_bytes_less(row.bytes, more->bytes);

			holdings->total_bytes -= row.bytes - bytes;
			row.bytes = bytes;
			row.n_blocks = gpc_bytes_less(row.n_blocks, more->blocks);
		}
		if (row.bytes || row.id)
			rows[n++] = row;
	}
	holdings->n = n;
}

void gpc_holdings_from_live(
	struct gpc_holdings *holdings, const struct gpc_report *report, int32_t ordinal)
{
	uint64_t count = report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_share surplus[GPUCACHE_MAX_DEVICES] = { 0 };
	const struct gpc_torch torch = gpc_torch_now(report, ordinal);
	struct gpc_share share;
	struct gpucache_block block;

	*holdings = (struct gpc_holdings){ .rows = gpc_new(count, sizeof *holdings->rows) };
	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);) {
		share = gpc_recording_share(
			report->recording, &block, &surplus[block.device % GPUCACHE_MAX_DEVICES]);
		holdings->rows[holdings->n++] = (struct gpc_row){ .id = block.stack,
			.device = block.device,
			.kind = kind_of(&block),
			.bytes = share.bytes,
			.n_blocks = share.blocks,
			.first_ns = block.time_ns,
			.last_ns = block.time_ns };
	}
	if (!gpc_filter_is_set(report->options)) {
		holdings->torch_bytes = torch.unused;
		holdings->framework = torch.framework;
		holdings->refused_bytes = gpc_recording_totals(report->recording, ordinal)
						  .sum.kind_bytes[GPUCACHE_KIND_REFUSED];
	}
	holdings->has_torch = torch.reserved != 0;
	holdings->total_bytes = gpc_bytes_add(holdings->torch_bytes, holdings->refused_bytes);
	unite(holdings);
	take_surplus(holdings, surplus);
}

void gpc_holdings_fini(struct gpc_holdings *holdings)
{
	free(holdings->rows);
	*holdings = (struct gpc_holdings){ 0 };
}

void gpc_holdings_show(const struct gpc_holdings *holdings, const struct gpc_report *report,
	unsigned n_rows, const char *title)
{
	static const struct gpc_column columns[] = { GPC_SITE_COLUMNS };
	const struct gpc_section section = { "holders", "HOLDERS", GPC_COLUMNS(columns), n_rows };
	struct gpc_document *doc = report->doc;
	struct gpc_groups libraries;
	struct gpc_groups sites;

	gpc_sites_create(&sites, report, holdings);
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "%s", title);
	gpc_sites_show(&sites, report);
	gpc_document_close(doc);
	gpc_document_member(doc, "not_listed_bytes", gpc_bytes(holdings->rest_bytes));
	gpc_groups_fini(&sites);
	gpc_purposes_show(holdings, report);
	gpc_libraries_create(&libraries, report, holdings);
	gpc_libraries_show(&libraries, doc);
	gpc_groups_fini(&libraries);
}
