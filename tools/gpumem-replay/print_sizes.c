/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --sizes: each policy on devices from barely large enough to plenty.  On a smaller device a policy makes more driver
 * calls, so a number of calls means little without the size of the device.
 */
#include "base/bytes.h"
#include "tools/gpumem-replay/print.h"

#define COLUMN_WIDTH 30

/* The devices: fixed_bytes of the trace, and this many thousandths of its peak of live bytes; 0: plenty of memory. */
static const unsigned permille[GPC_N_SIZES] = { 1010, 1020, 1050, 1100, 1500, 0 };

enum gpc_status gpc_sizes_run(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned i)
{
	struct gpc_run_settings at = *settings;
	uint64_t smallest = 0;
	enum gpc_status st = gpc_run_smallest(trace, policy, settings, &smallest, NULL);

	for (int size = 0; size < GPC_N_SIZES && !st; size++) {
		at.device_bytes = 0;
		if (permille[size])
			at.device_bytes = gpc_round_up(
				trace->fixed_bytes + trace->peak_live_bytes / 1000 * permille[size],
				GPC_RUN_DEVICE_STEP);
		st = gpc_run(trace, policy, &at, &table[size][i]);
	}
	if (!st)
		table[GPC_N_SIZES - 1][i].smallest_device_bytes = smallest;
	return st;
}

/* "12+3, 4 waits, 56 ns": calls that took and returned memory, and what they cost. */
static void add_run(struct gpc_text *text, const struct gpc_run *run)
{
	if (!gpc_run_is_good(run)) {
		gpc_text_add(text, "fails");
		return;
	}
	gpc_cell_write(text, gpc_count(run->n_calls[GPC_SIM_COST_MALLOC]));
	gpc_text_add(text, "+");
	gpc_cell_write(text, gpc_count(run->n_calls[GPC_SIM_COST_FREE]));
	if (run->has_work) {
		gpc_text_add(text, ", ");
		gpc_cell_write(text, gpc_count(run->n_waits));
		gpc_text_add(text, " waits");
	}
	if (!run->policy->is_model && run->n_operations) {
		gpc_text_add(text, ", ");
		gpc_cell_write(text, gpc_duration(run->elapsed_ns / run->n_operations));
	}
}

static void add_smallest(
	struct gpc_text *text, const struct gpc_trace *trace, const struct gpc_run *run)
{
	uint64_t bytes = run->smallest_device_bytes;
	uint64_t live = trace->peak_live_bytes + trace->fixed_bytes;

	gpc_text_add_bytes(text, bytes);
	if (live)
		gpc_text_add(text, " (%u.%03u)", (unsigned)(bytes / live),
			(unsigned)(bytes % live * 1000 / live));
}

static void show_table(struct gpc_document *doc, const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n)
{
	struct gpc_column columns[1 + GPC_MAX_POLICIES];
	const struct gpc_section section = { NULL, NULL, columns, n + 1, .flags = GPC_TEXT_ONLY };

	gpc_print_columns(columns, table[0], n, COLUMN_WIDTH);
	gpc_document_open(doc, &section);
	for (int size = -1; size < GPC_N_SIZES; size++) {
		struct gpc_cell cells[1 + GPC_MAX_POLICIES];
		char texts[GPC_MAX_POLICIES][64];
		GPC_TEXT(label, 40);

		if (size < 0)
			gpc_text_add(&label, "smallest (of live)");
		else if (permille[size])
			gpc_text_add(&label, "%u.%02u of live", permille[size] / 1000,
				permille[size] % 1000 / 10);
		else
			gpc_text_add(&label, "without limit");
		cells[0] = gpc_name(label.buf);
		for (unsigned i = 0; i < n; i++) {
			struct gpc_text text = gpc_text_init(texts[i], sizeof texts[i]);

			if (size < 0)
				add_smallest(&text, trace, &table[GPC_N_SIZES - 1][i]);
			else
				add_run(&text, &table[size][i]);
			cells[i + 1] = gpc_name(text.buf);
		}
		gpc_document_row_of(doc, cells, n + 1);
	}
	gpc_document_close(doc);
}

void gpc_print_sizes(struct gpc_document *doc, const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n)
{
	gpc_print_open_trace(doc, trace);
	show_table(doc, trace, table, n);
	gpc_document_open(doc, &(const struct gpc_section){ "runs", .flags = GPC_JSON_ONLY });
	for (unsigned i = 0; i < n; i++) {
		gpc_print_open_run(doc, &table[GPC_N_SIZES - 1][i]);
		gpc_document_open(doc, &(const struct gpc_section){ "sizes" });
		for (int size = 0; size < GPC_N_SIZES - 1; size++) {
			gpc_print_open_run(doc, &table[size][i]);
			gpc_document_close(doc);
		}
		gpc_document_close(doc);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
	gpc_document_close(doc);
}
