/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --sizes: each policy on devices from barely large enough to plenty, as a table and as JSON.  On a smaller device a
 * policy makes more driver calls, so a number of calls means little without the size of the device.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "base/bytes.h"
#include "tools/gpumem-replay/print.h"

#define LABEL_WIDTH  20
#define COLUMN_WIDTH 30

/* The devices: fixed_bytes of the trace, and this many thousandths of its peak of live bytes; 0: plenty of memory. */
static const uint64_t permille[GPC_N_SIZES] = { 1010, 1020, 1050, 1100, 1500, 0 };

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

static void add_calls(struct gpc_text *text, const struct gpc_run *run)
{
	gpc_text_add(text, "%" PRIu64 "+%" PRIu64, run->n_calls[GPC_SIM_COST_MALLOC],
		run->n_calls[GPC_SIM_COST_FREE]);
	if (run->has_work)
		gpc_text_add(text, ", %" PRIu64 " waits", run->n_waits);
	if (!run->policy->is_model && run->n_operations)
		gpc_text_add(text, ", %" PRIu64 " ns", run->elapsed_ns / run->n_operations);
}

static void print_cell(const struct gpc_run *run)
{
	GPC_TEXT(text, 64);

	if (!gpc_run_is_good(run))
		gpc_text_add(&text, "fails");
	else
		add_calls(&text, run);
	printf("%*s", COLUMN_WIDTH, text.buf);
}

static void print_smallest(const struct gpc_trace *trace, const struct gpc_run *run)
{
	uint64_t bytes = run->smallest_device_bytes;
	uint64_t live = trace->peak_live_bytes + trace->fixed_bytes;
	GPC_TEXT(text, 64);

	gpc_text_add_bytes(&text, bytes);
	if (live)
		gpc_text_add(&text, " (%" PRIu64 ".%03" PRIu64 ")", bytes / live,
			bytes % live * 1000 / live);
	printf("%*s", COLUMN_WIDTH, text.buf);
}

void gpc_print_sizes(const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n)
{
	gpc_print_notes(trace);
	printf("%-*s", LABEL_WIDTH, "");
	for (unsigned i = 0; i < n; i++)
		printf("%*s", COLUMN_WIDTH, table[0][i].policy->name);
	printf("\n%-*s", LABEL_WIDTH, "smallest (of live)");
	for (unsigned i = 0; i < n; i++)
		print_smallest(trace, &table[GPC_N_SIZES - 1][i]);
	for (int size = 0; size < GPC_N_SIZES; size++) {
		if (permille[size])
			printf("\n%" PRIu64 ".%02" PRIu64 " of live        ", permille[size] / 1000,
				permille[size] % 1000 / 10);
		else
			printf("\n%-*s", LABEL_WIDTH, "without limit");
		for (unsigned i = 0; i < n; i++)
			print_cell(&table[size][i]);
	}
	putchar('\n');
}

void gpc_print_json_add_sizes(struct json_object *root, const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n)
{
	struct json_object *runs = gpc_print_json_add(root, trace, table[GPC_N_SIZES - 1], n);

	for (unsigned i = 0; i < n; i++) {
		struct json_object *list = json_object_new_array();

		for (int size = 0; size < GPC_N_SIZES - 1; size++)
			json_object_array_add(list, gpc_print_json_run(&table[size][i]));
		json_object_object_add(json_object_array_get_idx(runs, i), "sizes", list);
	}
}
