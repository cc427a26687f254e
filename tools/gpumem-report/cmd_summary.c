/* SPDX-License-Identifier: Apache-2.0 */
/* `summary`: what a person wants to know first, on one screen. */
#include <string.h>
#include <time.h>

#include "base/counters.h"
#include "base/verdict.h"
#include "tools/gpumem-report/advice.h"
#include "tools/gpumem-report/holdings.h"
#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/sheet.h"
#include "tools/gpumem-report/tag_rows.h"

/* Rows of the table of holders, so that one GPU fits on a screen. */
#define DEFAULT_HOLDERS 5

/* How long it ran, as far as anybody knows. */
static uint64_t run_ns(const struct gpc_recording *rec)
{
	uint64_t last = gpc_recording_last_ns(rec);

	if (rec->run_state == GPC_RUN_ALIVE) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		return gpc_bytes_less((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
			rec->header.start_realtime_ns);
	}
	return gpc_bytes_less(last, rec->header.start_monotonic_ns);
}

static void print_headline(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	static const char *const after[] = { " for ", " after ", ", last seen after ",
		" without cleanup (_exit) after " };
	const struct gpc_recording *rec = report->recording;
	const struct gpucache_header *header = &rec->header;
	const struct gpc_paper *paper = &report->paper;
	char buf[60];
	struct gpc_text ending = gpc_text_init(buf, sizeof buf);

	if (fatal)
		gpc_text_add(&ending, ", OUT OF MEMORY");
	else if (n_recovered)
		gpc_text_add(&ending, ", %u failure%s recovered", n_recovered,
			n_recovered == 1 ? "" : "s");
	fputs(gpc_paper_ink(paper, fatal ? GPC_INK_ALARM : GPC_INK_BOLD), paper->out);
	gpc_paper_head(paper, "%s, pid %u on %s: %s%s%s%s",
		header->exe[0] ? gpc_base_name(header->exe) : "?", header->pid,
		header->host[0] ? header->host : "?", gpc_state_word(rec->run_state),
		after[rec->run_state], gpc_show_duration(run_ns(rec)), buf);
	fputs(gpc_paper_ink(paper, GPC_INK_PLAIN), paper->out);
	fprintf(paper->out, "started %s", gpc_show_time(header->start_realtime_ns));
	if (header->rank >= 0)
		fprintf(paper->out, ", rank %d", header->rank);
	if (header->rank >= 0 && header->world_size > 0)
		fprintf(paper->out, " of %d", header->world_size);
	if (header->job[0])
		fprintf(paper->out, ", job %s", header->job);
	fputc('\n', paper->out);
	if (header->command[0])
		fprintf(paper->out, "%.*s%s\n", paper->width - 2, header->command,
			(int)strlen(header->command) > paper->width - 2 ? ".." : "");
}

static const char *moment_of(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	if (oom)
		return "when memory ran out";
	switch (report->recording->run_state) {
	case GPC_RUN_ALIVE:
		return "now";
	case GPC_RUN_ENDED:
		return "when it ended";
	case GPC_RUN_EXITED:
		return "when it exited";
	case GPC_RUN_KILLED:
		break;
	}
	return "when it was killed";
}

static void print_rescued(const struct gpc_paper *paper, const struct gpucache_counters *sum)
{
	gpc_paper_line(paper, "%13s would have failed without a step of the ladder:",
		gpc_show_count(sum->n_rescued));
	for (unsigned i = 0; i < GPUCACHE_MAX_RUNGS; i++) {
		if (sum->n_rescued_by[i])
			gpc_paper_line(paper, "%13s   %s", gpc_show_count(sum->n_rescued_by[i]),
				gpc_rung_text(i));
	}
}

static void print_calls(
	struct gpc_report *report, int32_t ordinal, const struct gpucache_counters *sum)
{
	struct gpucache_torch torch;
	const struct gpc_recording *rec = report->recording;
	const struct gpc_paper *paper = &report->paper;

	gpc_paper_section(paper, "CALLS", "%13s allocations by the program, %s frees",
		gpc_show_count(sum->n_malloc), gpc_show_count(sum->n_free));
	if (gpc_recording_find_torch(rec, ordinal, &torch))
		gpc_paper_line(paper, "%13s tensors of PyTorch, %s freed",
			gpc_show_count(torch.n_malloc), gpc_show_count(torch.n_free));
	gpc_paper_line(paper, "%13s answered from the cache (%s)", gpc_show_count(sum->n_hit),
		sum->n_malloc ? gpc_show_share(sum->n_hit, sum->n_malloc) : "none to answer");
	if (sum->n_malloc > sum->n_driver_malloc)
		gpc_paper_line(paper, "%13s allocations of the driver: %s fewer",
			gpc_show_count(sum->n_driver_malloc),
			gpc_show_share(sum->n_malloc - sum->n_driver_malloc, sum->n_malloc));
	else
		gpc_paper_line(paper, "%13s allocations of the driver",
			gpc_show_count(sum->n_driver_malloc));
	if (sum->last_driver_malloc_ns > rec->header.start_monotonic_ns)
		gpc_paper_line(paper, "%13s the last of them, %s after the start", "",
			gpc_show_duration(
				sum->last_driver_malloc_ns - rec->header.start_monotonic_ns));
	if (sum->n_gc_segments)
		gpc_paper_line(paper, "%13s segments given back to the driver",
			gpc_show_count(sum->n_gc_segments));
	if (sum->n_fence)
		gpc_paper_line(
			paper, "%13s fences behind what was freed", gpc_show_count(sum->n_fence));
	if (sum->n_sync)
		gpc_paper_line(
			paper, "%13s waits of gpucache for the GPU", gpc_show_count(sum->n_sync));
	if (sum->n_rescued)
		print_rescued(paper, sum);
	if (sum->n_oom)
		gpc_paper_line(paper, "%13s failed for want of memory", gpc_show_count(sum->n_oom));
}

static void print_peak(
	struct gpc_report *report, int32_t ordinal, const struct gpc_device_totals *totals)
{
	const struct gpc_recording *rec = report->recording;
	const char *of_contexts = totals->n_contexts > 1 ? " (sum of its contexts' own peaks)" : "";
	const struct gpucache_counters *sum = &totals->sum;
	struct gpucache_peak peak;

	gpc_paper_section(&report->paper, "PEAK", "%s asked for, %s rounded, %s reserved%s",
		gpc_show_bytes(sum->peak_requested_bytes), gpc_show_bytes(sum->peak_live_bytes),
		gpc_show_bytes(sum->peak_reserved_bytes), of_contexts);
	if (sum->peak_direct_bytes)
		gpc_paper_line(&report->paper, "and %s straight from the driver",
			gpc_show_bytes(sum->peak_direct_bytes));
	if (sum->peak_pending_bytes)
		gpc_paper_line(&report->paper, "and %s freed, but not yet safe to use again",
			gpc_show_bytes(sum->peak_pending_bytes));
	if (sum->peak_host_bytes)
		gpc_paper_line(&report->paper, "and %s of pinned host memory",
			gpc_show_bytes(sum->peak_host_bytes));
	if (gpc_recording_find_peak(rec, ordinal, &peak) &&
		peak.time_ns >= rec->header.start_monotonic_ns)
		gpc_paper_line(&report->paper, "at %s, %s after the start",
			gpc_show_time(gpc_report_realtime(rec, peak.time_ns)),
			gpc_show_duration(peak.time_ns - rec->header.start_monotonic_ns));
}

static enum gpc_status find_holdings(struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, struct gpc_holdings *ret_holdings)
{
	if (oom)
		return gpc_holdings_from_oom(ret_holdings, report, oom);
	return gpc_holdings_from_live(ret_holdings, report, ordinal);
}

static void print_holders(
	struct gpc_report *report, int32_t ordinal, const struct gpucache_oom *oom)
{
	struct gpc_holdings holdings;

	if (find_holdings(report, ordinal, oom, &holdings) != GPC_OK) {
		gpc_complain("no memory for the table of holders");
	} else if (!oom && report->recording->regions[GPUCACHE_REGION_BLOCKS].count == 0) {
		gpc_paper_section(&report->paper, "HOLDERS", "nobody knows: BLOCKS cannot be read");
	} else if (holdings.n == 0) {
		gpc_paper_section(&report->paper, "HOLDERS", "none: nothing was live %s",
			moment_of(report, oom));
	} else {
		gpc_paper_section(&report->paper, "HOLDERS", "%s live by call site, %s",
			gpc_show_bytes(holdings.total_bytes), moment_of(report, oom));
		gpc_holdings_print(&holdings, report,
			report->options->limit ? report->options->limit : DEFAULT_HOLDERS);
	}
	gpc_holdings_fini(&holdings);
}

/* The OOM, if it is one of this device. */
static const struct gpucache_oom *oom_of(const struct gpucache_oom *fatal, int32_t ordinal)
{
	return fatal && fatal->device == ordinal ? fatal : NULL;
}

static void print_device(struct gpc_report *report, const struct gpucache_device *device,
	const struct gpucache_oom *oom)
{
	struct gpc_device_totals totals = gpc_recording_totals(report->recording, device->ordinal);
	struct gpucache_balance balance;
	struct gpc_torch torch;

	if (!oom && totals.n_contexts == 0)
		return;
	if (oom) {
		balance = oom->balance;
		gpc_paper_section(&report->paper, "BALANCE", "GPU %d, %s, %s", device->ordinal,
			device->name, moment_of(report, oom));
		torch = gpc_torch_at(report, oom);
		gpc_sheet_print(report, &balance, oom->kind_bytes, &torch, oom->requested);
		gpc_torch_print_used(report, &torch, &balance, oom->kind_bytes);
	} else if (gpc_recording_balance(report->recording, device, &balance)) {
		gpc_paper_section(&report->paper, "BALANCE", "GPU %d, %s, %s", device->ordinal,
			device->name, moment_of(report, oom));
		torch = gpc_torch_now(report, device->ordinal);
		gpc_sheet_print(report, &balance, totals.sum.kind_bytes, &torch, 0);
		gpc_torch_print_used(report, &torch, &balance, totals.sum.kind_bytes);
	} else {
		gpc_paper_section(&report->paper, "BALANCE",
			"GPU %d: the library never asked the driver how full it is",
			device->ordinal);
	}
	print_peak(report, device->ordinal, &totals);
	print_holders(report, device->ordinal, oom);
	gpc_tag_rows_print(report, device->ordinal, oom, moment_of(report, oom));
	print_calls(report, device->ordinal, &totals.sum);
}

static void print_next(struct gpc_report *report, const struct gpucache_oom *fatal)
{
	char buf[600];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	uint64_t bytes = 0;
	uint64_t n = gpc_report_count_live(report, -1, &bytes);

	if (fatal)
		gpc_text_add(&text, "gpumem-report oom");
	else if (n && report->recording->run_state != GPC_RUN_ALIVE)
		gpc_text_add(&text, "gpumem-report leaks");
	else
		return;
	gpc_report_target(report, &text);
	gpc_paper_section(&report->paper, "NEXT", "%s", buf);
}

static void print_text(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_device device;
	unsigned n_used = 0;

	print_headline(report, fatal, n_recovered);
	if (fatal) {
		fputc('\n', report->paper.out);
		gpc_advice_print(report, fatal, false);
	}
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_DEVICES].count; i++) {
		if (!gpc_recording_read_device(rec, i, &device) ||
			!gpc_report_wants(report, device.ordinal))
			continue;
		n_used += gpc_recording_totals(rec, device.ordinal).n_contexts > 0;
		print_device(report, &device, oom_of(fatal, device.ordinal));
	}
	if (n_used == 0)
		gpc_paper_section(&report->paper, "BALANCE", "%s",
			report->options->device >= 0 ? "that GPU was not used" : "no GPU was used");
	gpc_report_print_notes(report);
	print_next(report, fatal);
}

static struct json_object *array_json(const struct gpc_counter *counter, const uint64_t words[])
{
	struct json_object *object = json_object_new_object();
	bool is_by_kind = counter->counts == GPC_COUNTS_BYTES_BY_KIND;
	unsigned n = is_by_kind ? GPUCACHE_KIND_COUNT : GPC_RUNG_COUNT;

	for (unsigned i = 0; i < n; i++)
		if (!is_by_kind || words[i])
			gpc_json_bytes(object, is_by_kind ? gpc_kind_words(i) : gpc_rung_name(i),
				words[i]);
	return object;
}

/* The counters of this `when`, under their keys. */
static void add_counters(struct json_object *object, const struct gpc_report *report,
	const struct gpucache_counters *sum, enum gpc_counter_when when)
{
	for (unsigned i = 0; i < GPC_N_COUNTERS; i++) {
		const struct gpc_counter *counter = &gpc_counters[i];
		const uint64_t *words = gpc_counter_words(sum, counter);

		if (counter->when != when)
			continue;
		if (counter->counts == GPC_COUNTS_TIME)
			gpc_json_time(object, counter->key, report, *words);
		else if (counter->n_words > 1)
			json_object_object_add(object, counter->key, array_json(counter, words));
		else
			gpc_json_bytes(object, counter->key, *words);
	}
}

static struct json_object *device_json(struct gpc_report *report,
	const struct gpucache_device *device, const struct gpucache_oom *oom)
{
	struct gpc_device_totals totals = gpc_recording_totals(report->recording, device->ordinal);
	struct json_object *object = gpc_json_device(device);
	struct json_object *now = json_object_new_object();
	struct json_object *calls = json_object_new_object();
	struct json_object *peak = json_object_new_object();
	struct gpucache_balance balance;
	struct gpucache_peak record;
	struct gpc_holdings holdings;

	gpc_json_text(object, "moment", oom ? "oom" : gpc_state_word(report->recording->run_state));
	if (oom)
		json_object_object_add(
			object, "balance", gpc_json_balance(&oom->balance, oom->kind_bytes));
	else
		json_object_object_add(object, "balance",
			gpc_recording_balance(report->recording, device, &balance)
				? gpc_json_balance(&balance, totals.sum.kind_bytes)
				: NULL);
	add_counters(now, report, &totals.sum, GPC_WHEN_HEAP);
	add_counters(now, report, &totals.sum, GPC_WHEN_BESIDE);
	json_object_object_add(object, "now", now);
	add_counters(calls, report, &totals.sum, GPC_WHEN_EVER);
	json_object_object_add(object, "calls", calls);
	add_counters(peak, report, &totals.sum, GPC_WHEN_PEAK);
	gpc_json_time(peak, "time", report,
		gpc_recording_find_peak(report->recording, device->ordinal, &record)
			? record.time_ns
			: 0);
	json_object_object_add(object, "peak", peak);
	json_object_object_add(object, "torch", gpc_torch_json(report, device->ordinal));
	if (find_holdings(report, device->ordinal, oom, &holdings) == GPC_OK)
		gpc_holdings_json(&holdings, report, object);
	gpc_holdings_fini(&holdings);
	gpc_tag_rows_json(object, report, device->ordinal, oom);
	return object;
}

static void print_json(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	struct json_object *root = gpc_json_begin(report, "summary");
	struct json_object *devices = json_object_new_array();
	const struct gpc_recording *rec = report->recording;
	struct json_object *verdict = NULL;
	struct gpucache_device device;

	if (fatal) {
		verdict = json_object_new_object();
		gpc_json_text(verdict, "word", gpc_verdict_word(fatal->verdict));
		gpc_json_text(verdict, "strength", gpc_strength_word(fatal->strength));
		gpc_json_bytes(verdict, "oom_number", fatal->number);
	}
	json_object_object_add(root, "verdict", verdict);
	gpc_json_bytes(root, "recovered_failures", n_recovered);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_DEVICES].count; i++)
		if (gpc_recording_read_device(rec, i, &device) &&
			gpc_report_wants(report, device.ordinal))
			json_object_array_add(devices,
				device_json(report, &device, oom_of(fatal, device.ordinal)));
	json_object_object_add(root, "devices", devices);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_summary(struct gpc_report *report)
{
	struct gpucache_oom oom;
	const struct gpucache_oom *fatal = gpc_report_fatal_oom(report, &oom) ? &oom : NULL;
	unsigned n_recovered = 0;
	unsigned n_fatal = 0;

	gpc_report_count_ooms(report, &n_fatal, &n_recovered);
	if (report->options->json)
		print_json(report, fatal, n_recovered);
	else
		print_text(report, fatal, n_recovered);
	return GPC_EXIT_MADE;
}
