/* SPDX-License-Identifier: Apache-2.0 */
/* `summary`: the most important facts on one screen. */
#include <string.h>

#include "base/clock.h"
#include "model/counters.h"
#include "tools/gpumem-report/holders/by_tag.h"
#include "tools/gpumem-report/holders/by_thread.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/holders/leaks.h"
#include "tools/gpumem-report/output/balance_sheet.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/why/failure.h"
#include "why/why.h"

/* Rows of the table of holders: few, so that one GPU fits on a screen. */
#define DEFAULT_HOLDERS 5

/* The duration of the run, as far as known. */
static uint64_t run_ns(const struct gpc_recording *rec)
{
	if (rec->run_state == GPC_RUN_ALIVE)
		return gpc_bytes_less(gpc_clock_realtime_ns(), rec->header.start_realtime_ns);
	return gpc_bytes_less(gpc_recording_last_ns(rec), rec->header.start_monotonic_ns);
}

static void print_headline(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	static const char *const after[] = { " for ", " after ", ", last seen after ",
		" without cleanup (_exit) after " };
	const struct gpc_recording *rec = report->recording;
	const struct gpucache_header *header = &rec->header;
	const struct gpc_paper *paper = &report->paper;
	struct gpucache_device second;
	GPC_TEXT(ending, 60);

	if (fatal)
		gpc_text_add(&ending, ", OUT OF MEMORY");
	if (fatal && gpc_recording_find_device(rec, 1, &second))
		gpc_text_add(&ending, " on GPU %d", fatal->device);
	if (!fatal && n_recovered)
		gpc_text_add(&ending, ", %u failure%s recovered", n_recovered,
			n_recovered == 1 ? "" : "s");
	fputs(gpc_paper_ink(paper, fatal ? GPC_INK_ALARM : GPC_INK_BOLD), paper->out);
	gpc_paper_head(paper, "%s, pid %u on %s: %s%s%s%s",
		header->exe[0] ? gpc_base_name(header->exe) : "?", header->pid,
		header->host[0] ? header->host : "?", gpc_state_word(rec->run_state),
		after[rec->run_state], gpc_show_duration(run_ns(rec)), ending.buf);
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

static void print_rescued(const struct gpc_paper *paper, const struct gpucache_counters *sum)
{
	gpc_paper_line(paper,
		"%13s would have failed without the ladder:", gpc_show_count(sum->n_rescued));
	for (unsigned i = 0; i < GPUCACHE_MAX_RUNGS; i++)
		if (sum->n_rescued_by[i])
			gpc_paper_line(paper, "%13s   %s", gpc_show_count(sum->n_rescued_by[i]),
				gpc_rung_words(i).text);
}

/* Prints "N WHAT", unless n is 0. */
static void print_count(const struct gpc_paper *paper, uint64_t n, const char *what)
{
	if (n)
		gpc_paper_line(paper, "%13s %s", gpc_show_count(n), what);
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
		gpc_paper_line(paper, "%13s allocations from the driver: %s fewer",
			gpc_show_count(sum->n_driver_malloc),
			gpc_show_share(sum->n_malloc - sum->n_driver_malloc, sum->n_malloc));
	else
		gpc_paper_line(paper, "%13s allocations from the driver",
			gpc_show_count(sum->n_driver_malloc));
	if (sum->last_driver_malloc_ns > rec->header.start_monotonic_ns)
		gpc_paper_line(paper, "%13s the last of them, %s after the start", "",
			gpc_show_duration(
				sum->last_driver_malloc_ns - rec->header.start_monotonic_ns));
	print_count(paper, sum->n_gc_segments, "segments given back to the driver");
	if (sum->one_stream_end)
		gpc_paper_line(paper, "%13s one stream does not order all reuse: %s", "",
			gpc_one_stream_end_words(sum->one_stream_end).text);
	print_count(paper, sum->n_fence, "fences for freed memory");
	print_count(paper, sum->n_sync, "times gpucache waited for the GPU");
	if (sum->n_rescued)
		print_rescued(paper, sum);
	print_count(paper, sum->n_oom, "failed: out of memory");
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

static void print_holders(struct gpc_report *report, const struct gpc_moment *moment)
{
	const char *words = gpc_moment_words(moment, report);
	struct gpc_holdings holdings;
	GPC_TEXT(filters, 200);

	gpc_holdings_at(&holdings, report, moment);
	if (!moment->is_there) {
		gpc_paper_section(&report->paper, "HOLDERS", "%s",
			moment->at == GPC_AT_OOM ? "memory did not run out on it"
						 : "no peak was recorded");
	} else if (moment->at == GPC_AT_END &&
		   report->recording->regions[GPUCACHE_REGION_BLOCKS].count == 0) {
		gpc_paper_section(&report->paper, "HOLDERS", "unknown: BLOCKS cannot be read");
	} else if (holdings.n == 0) {
		gpc_paper_section(&report->paper, "HOLDERS", "none: nothing was live %s", words);
	} else {
		gpc_filter_describe(report->options, &filters);
		gpc_paper_section(&report->paper, "HOLDERS", "%s live by call site, %s%s",
			gpc_show_bytes(holdings.total_bytes), words, filters.buf);
		gpc_holdings_print(&holdings, report, gpc_report_limit(report, DEFAULT_HOLDERS));
	}
	gpc_holdings_fini(&holdings);
}

/* Prints the GPU's other names, and the verdict of a failure on this GPU if WHY explains another failure. */
static void print_names(struct gpc_report *report, const struct gpucache_device *device,
	const struct gpucache_oom *oom, const struct gpucache_oom *fatal)
{
	GPC_TEXT(text, 120);

	gpc_report_add_names(device, &text);
	if (text.len)
		gpc_paper_line(&report->paper, "%s", text.buf);
	if (oom && fatal && oom->number != fatal->number)
		gpc_paper_line(&report->paper, "%s (%s): gpumem-report oom %llu",
			gpc_cause_word(oom->verdict), gpc_strength_word(oom->strength),
			(unsigned long long)oom->number);
}

static void print_balance(struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment, const struct gpucache_oom *fatal,
	const struct gpucache_counters *sum)
{
	const struct gpucache_oom *oom = gpc_moment_oom(moment);
	struct gpucache_balance balance;
	bool is_known = oom || (moment->at == GPC_AT_END &&
				       gpc_recording_balance(report->recording, device, &balance));

	if (is_known)
		gpc_paper_section(&report->paper, "BALANCE", "GPU %d, %s, %s", device->ordinal,
			device->name, gpc_moment_words(moment, report));
	else
		gpc_paper_section(&report->paper, "BALANCE",
			moment->at == GPC_AT_END
				? "GPU %d: the library never asked the driver how full it is"
			: moment->at == GPC_AT_OOM
				? "GPU %d: memory did not run out on it"
				: "GPU %d: only the holders of its peak are recorded",
			device->ordinal);
	print_names(report, device, oom, fatal);
	if (is_known)
		gpc_sheet_print(report, device->ordinal, oom ? &oom->balance : &balance,
			oom ? oom->kind_bytes : sum->kind_bytes, oom);
}

static void print_device(struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment, const struct gpucache_oom *fatal)
{
	struct gpc_device_totals totals = gpc_recording_totals(report->recording, device->ordinal);

	print_balance(report, device, moment, fatal, &totals.sum);
	print_peak(report, device->ordinal, &totals);
	gpc_framework_print(report, device);
	print_holders(report, moment);
	if (moment->at != GPC_AT_PEAK)
		gpc_tag_rows_print(report, device->ordinal, gpc_moment_oom(moment),
			gpc_moment_words(moment, report));
	if (moment->at == GPC_AT_END)
		gpc_asker_rows_print(report, device->ordinal, gpc_moment_words(moment, report));
	print_calls(report, device->ordinal, &totals.sum);
}

static bool find_any_peak(const struct gpc_report *report, struct gpucache_peak *ret_peak)
{
	struct gpucache_device device;

	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);)
		if (gpc_recording_find_peak(report->recording, device.ordinal, ret_peak) &&
			ret_peak->n_holders)
			return true;
	return false;
}

static void print_next(struct gpc_report *report, const struct gpucache_oom *fatal)
{
	const char *section = "NEXT"; /* NULL for further lines */
	GPC_TEXT(target, 600);
	struct gpucache_peak peak;
	uint64_t bytes = 0;

	(void)gpc_report_count_live(report, -1, &bytes);
	gpc_report_target(report, &target);
	if (fatal || (report->recording->run_state != GPC_RUN_ALIVE && gpc_leaks_exist(report))) {
		gpc_paper_section(&report->paper, section, "gpumem-report %s%s",
			fatal ? "oom" : "leaks", target.buf);
		section = NULL;
	}
	/* Without a failure, a peak well above the live bytes is what a reader asks about next. */
	if (!fatal && report->options->moment == GPC_AT_USUAL && find_any_peak(report, &peak) &&
		peak.requested_bytes > gpc_bytes_add(bytes, bytes / 8))
		gpc_paper_section(&report->paper, section, "gpumem-report --at=peak%s", target.buf);
}

static void print_text(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	struct gpucache_device device;
	struct gpc_failure failure;
	struct gpc_moment moment;
	unsigned n_used = 0;

	print_headline(report, fatal, n_recovered);
	if (fatal) {
		fputc('\n', report->paper.out);
		gpc_failure_explain(report, fatal, &failure);
		gpc_failure_print(&failure, false);
	}
	/* The GPU that WHY is about comes first. */
	for (uint64_t i = 0; fatal && gpc_moment_next(report, &i, &device, &moment);)
		if (device.ordinal == fatal->device)
			print_device(report, &device, &moment, fatal);
	for (uint64_t i = 0; gpc_moment_next(report, &i, &device, &moment); n_used++)
		if (!fatal || device.ordinal != fatal->device)
			print_device(report, &device, &moment, fatal);
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
			gpc_json_bytes(object,
				is_by_kind ? gpc_kind_words(i) : gpc_rung_words(i).word, words[i]);
	return object;
}

/* Adds the counters of this `when`, each under its key. */
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
		else if (counter->counts == GPC_COUNTS_REASON)
			gpc_json_text(object, counter->key, gpc_one_stream_end_words(*words).word);
		else if (counter->n_words > 1)
			json_object_object_add(object, counter->key, array_json(counter, words));
		else
			gpc_json_bytes(object, counter->key, *words);
	}
}

static struct json_object *verdict_json(
	const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct json_object *verdict;
	struct gpc_failure failure;

	if (!oom)
		return NULL;
	gpc_failure_explain(report, oom, &failure);
	verdict = json_object_new_object();
	gpc_json_text(verdict, "word", gpc_cause_word(failure.oom.verdict));
	gpc_json_text(verdict, "strength", gpc_strength_word(failure.oom.strength));
	gpc_json_bytes(verdict, "oom_number", oom->number);
	return verdict;
}

/* The balance sheet of the moment; NULL for a peak, for which none is recorded. */
static struct json_object *balance_json(const struct gpc_report *report,
	const struct gpucache_device *device, const struct gpc_moment *moment,
	const struct gpucache_counters *sum)
{
	const struct gpucache_oom *oom = gpc_moment_oom(moment);
	struct gpucache_balance balance;

	if (oom)
		return gpc_json_balance(&oom->balance, oom->kind_bytes);
	if (moment->at != GPC_AT_END || !gpc_recording_balance(report->recording, device, &balance))
		return NULL;
	return gpc_json_balance(&balance, sum->kind_bytes);
}

static struct json_object *device_json(struct gpc_report *report,
	const struct gpucache_device *device, const struct gpc_moment *moment)
{
	struct gpc_device_totals totals = gpc_recording_totals(report->recording, device->ordinal);
	struct json_object *object = gpc_json_device(device);
	struct json_object *now;
	struct json_object *peak;
	struct gpucache_oom oom;
	struct gpucache_peak record;
	struct gpc_holdings holdings;

	gpc_json_text(object, "moment", gpc_moment_key(moment, report));
	json_object_object_add(object, "verdict",
		verdict_json(report,
			gpc_report_find_oom(report, device->ordinal, true, &oom) ? &oom : NULL));
	json_object_object_add(
		object, "balance", balance_json(report, device, moment, &totals.sum));
	now = gpc_json_add(object, "now", json_object_new_object());
	add_counters(now, report, &totals.sum, GPC_WHEN_HEAP);
	add_counters(now, report, &totals.sum, GPC_WHEN_BESIDE);
	add_counters(gpc_json_add(object, "calls", json_object_new_object()), report, &totals.sum,
		GPC_WHEN_EVER);
	peak = gpc_json_add(object, "peak", json_object_new_object());
	add_counters(peak, report, &totals.sum, GPC_WHEN_PEAK);
	gpc_json_time(peak, "time", report,
		gpc_recording_find_peak(report->recording, device->ordinal, &record)
			? record.time_ns
			: 0);
	json_object_object_add(object, "torch", gpc_torch_json(report, device->ordinal));
	gpc_framework_json(object, report, device);
	gpc_holdings_at(&holdings, report, moment);
	gpc_holdings_json(&holdings, report, object);
	gpc_holdings_fini(&holdings);
	if (moment->at != GPC_AT_PEAK)
		gpc_tag_rows_json(object, report, device->ordinal, gpc_moment_oom(moment));
	if (moment->at == GPC_AT_END)
		gpc_asker_rows_json(object, report, device->ordinal);
	return object;
}

static void print_json(
	struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	struct json_object *root = gpc_json_begin(report, "summary");
	struct json_object *devices;
	struct gpucache_device device;
	struct gpc_moment moment;

	json_object_object_add(root, "verdict", verdict_json(report, fatal));
	gpc_json_bytes(root, "recovered_failures", n_recovered);
	devices = gpc_json_add(root, "devices", json_object_new_array());
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		gpc_moment_find(&moment, report, device.ordinal);
		json_object_array_add(devices, device_json(report, &device, &moment));
	}
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_summary(struct gpc_report *report)
{
	struct gpucache_oom oom;
	const struct gpucache_oom *fatal =
		gpc_report_find_oom(report, -1, true, &oom) ? &oom : NULL;
	const unsigned n_recovered = gpc_report_count_ooms(report, true);

	if (report->options->json)
		print_json(report, fatal, n_recovered);
	else
		print_text(report, fatal, n_recovered);
	return GPC_EXIT_MADE;
}
