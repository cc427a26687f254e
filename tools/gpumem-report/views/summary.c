/* SPDX-License-Identifier: Apache-2.0 */
/* `summary`: the most important facts on one screen. */
#include <string.h>

#include "base/clock.h"
#include "model/counters.h"
#include "model/sheet.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/by_tag.h"
#include "tools/gpumem-report/holders/by_thread.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/holders/leaks.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/why/failure.h"
#include "why/why.h"

/* Rows of the table of holders: few, so that one GPU fits on a screen. */
#define N_HOLDERS 5

/* The duration of the run, as far as known. */
static uint64_t run_ns(const struct gpc_recording *rec)
{
	if (rec->run_state == GPC_RUN_ALIVE)
		return gpc_bytes_less(gpc_clock_realtime_ns(), rec->header.start_realtime_ns);
	return gpc_bytes_less(gpc_recording_last_ns(rec), rec->header.start_monotonic_ns);
}

static void say_headline(
	const struct gpc_report *report, const struct gpucache_oom *fatal, unsigned n_recovered)
{
	static const char *const after[] = { " for ", " after ", ", last seen after ",
		" without cleanup (_exit) after " };
	const struct gpc_recording *rec = report->recording;
	const struct gpucache_header *header = &rec->header;
	struct gpucache_device second;
	GPC_TEXT(started, 200);
	GPC_TEXT(text, 200);

	gpc_text_add(&text, "%s%s", after[rec->run_state], gpc_show_duration(run_ns(rec)));
	if (fatal)
		gpc_text_add(&text, ", OUT OF MEMORY");
	if (fatal && gpc_recording_find_device(rec, 1, &second))
		gpc_text_add(&text, " on GPU %d", fatal->device);
	if (!fatal && n_recovered)
		gpc_text_add(&text, ", %u failure%s recovered", n_recovered,
			n_recovered == 1 ? "" : "s");
	gpc_text_add(&started, "started %s", gpc_show_time(header->start_realtime_ns));
	if (header->rank >= 0)
		gpc_text_add(&started, ", rank %d", header->rank);
	if (header->rank >= 0 && header->world_size > 0)
		gpc_text_add(&started, " of %d", header->world_size);
	if (header->job[0])
		gpc_text_add(&started, ", job %s", header->job);
	gpc_page_say_who(report, fatal ? GPC_INK_ALARM : GPC_INK_BOLD, text.buf, started.buf);
}

/* The verdict of the device's failure.  `fatal`, where it is explained already, is not replayed again. */
static void tell_verdict(
	const struct gpc_report *report, int32_t ordinal, const struct gpc_failure *fatal)
{
	struct gpc_document *doc = report->doc;
	const struct gpc_failure *failure = fatal;
	struct gpc_failure other;
	struct gpucache_oom oom;

	if (!gpc_report_find_oom(report, ordinal, true, &oom)) {
		gpc_document_member(doc, "verdict", gpc_blank());
		return;
	}
	if (!fatal || fatal->oom.number != oom.number) {
		gpc_failure_explain(report, &oom, &other);
		failure = &other;
	}
	gpc_document_open_object(doc, "verdict");
	gpc_document_member(doc, "word", gpc_name(gpc_cause_word(failure->oom.verdict)));
	gpc_document_member(doc, "strength", gpc_name(gpc_strength_word(failure->oom.strength)));
	gpc_document_member(doc, "oom_number", gpc_number(oom.number));
	gpc_document_close(doc);
}

/* ---- counters ---- */

static void tell_array(
	struct gpc_document *doc, const struct gpc_counter *counter, const uint64_t words[])
{
	bool is_by_kind = counter->counts == GPC_COUNTS_BYTES_BY_KIND;
	unsigned n = is_by_kind ? GPUCACHE_KIND_COUNT : GPC_RUNG_COUNT;

	gpc_document_open_object(doc, counter->key);
	for (unsigned i = 0; i < n; i++)
		if (!is_by_kind || words[i])
			gpc_document_member(doc,
				is_by_kind ? gpc_kind_words(i) : gpc_rung_words(i).word,
				gpc_number(words[i]));
	gpc_document_close(doc);
}

/* Adds the counters of this `when`, each under its key. */
static void tell_counters(const struct gpc_report *report, const struct gpucache_counters *sum,
	enum gpc_counter_when when)
{
	struct gpc_document *doc = report->doc;

	for (unsigned i = 0; i < GPC_N_COUNTERS; i++) {
		const struct gpc_counter *counter = &gpc_counters[i];
		const uint64_t *words = gpc_counter_words(sum, counter);

		if (counter->when != when)
			continue;
		if (counter->counts == GPC_COUNTS_TIME)
			gpc_document_member(doc, counter->key, gpc_page_time(report, *words));
		else if (counter->counts == GPC_COUNTS_REASON)
			gpc_document_member(
				doc, counter->key, gpc_name(gpc_one_stream_end_words(*words).word));
		else if (counter->n_words > 1)
			tell_array(doc, counter, words);
		else
			gpc_document_member(doc, counter->key, gpc_number(*words));
	}
}

static void tell_callers(const struct gpc_report *report)
{
	enum gpc_text_kind kind;

	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 64);

		if (!gpc_report_read_line(report->recording, i, &kind, &text))
			break;
		if (kind == GPC_TEXT_CALLER)
			gpc_document_fact(report->doc, gpc_blank(), GPC_CALLER_WORDS, text.buf);
	}
}

static void show_calls(
	const struct gpc_report *report, int32_t ordinal, const struct gpucache_counters *sum)
{
	static const struct gpc_column columns[] = { { NULL, "", 13 }, { NULL, "" } };
	static const struct gpc_section section = { "calls", "CALLS", GPC_COLUMNS(columns),
		.flags = GPC_OBJECT | GPC_BESIDE };
	uint64_t start_ns = report->recording->header.start_monotonic_ns;
	uint64_t fewer = gpc_bytes_less(sum->n_malloc, sum->n_driver_malloc);
	const struct {
		uint64_t n;
		const char *words;
	} rows[] = { { sum->n_gc_segments, "segments given back to the driver" },
		{ sum->n_fence, "fences for freed memory" },
		{ sum->n_sync, "times gpucache waited for the GPU" },
		{ sum->n_oom, "failed: out of memory" },
		{ sum->n_rescued, "would have failed without the ladder:" } };
	struct gpc_document *doc = report->doc;
	struct gpucache_torch torch;

	gpc_document_open(doc, &section);
	tell_counters(report, sum, GPC_WHEN_EVER);
	gpc_document_fact(doc, gpc_count(sum->n_malloc), "allocations by the program, %s frees",
		gpc_show_count(sum->n_free));
	if (gpc_recording_find_torch(report->recording, ordinal, &torch))
		gpc_document_fact(doc, gpc_count(torch.n_malloc), "%s, %s freed",
			gpc_framework_words(torch.framework)->pieces, gpc_show_count(torch.n_free));
	gpc_document_fact(doc, gpc_count(sum->n_hit), "answered from the cache (%s)",
		sum->n_malloc ? gpc_show_share(sum->n_hit, sum->n_malloc) : "none to answer");
	gpc_document_fact(doc, gpc_count(sum->n_driver_malloc), "allocations from the driver%s%s%s",
		fewer ? ": " : "", fewer ? gpc_show_share(fewer, sum->n_malloc) : "",
		fewer ? " fewer" : "");
	tell_callers(report);
	if (sum->last_driver_malloc_ns > start_ns)
		gpc_document_fact(doc, gpc_blank(), "the last of them, %s after the start",
			gpc_show_duration(sum->last_driver_malloc_ns - start_ns));
	if (sum->one_stream_end)
		gpc_document_fact(doc, gpc_blank(), "one stream does not order all reuse: %s",
			gpc_one_stream_end_words(sum->one_stream_end).text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].n)
			gpc_document_fact(doc, gpc_count(rows[i].n), "%s", rows[i].words);
	for (unsigned i = 0; i < GPUCACHE_MAX_RUNGS; i++)
		if (sum->n_rescued_by[i])
			gpc_document_fact(doc, gpc_count(sum->n_rescued_by[i]), "  %s",
				gpc_rung_words(i).text);
	gpc_document_close(doc);
}

static void show_peak(
	const struct gpc_report *report, int32_t ordinal, const struct gpc_device_totals *totals)
{
	static const struct gpc_section section = { "peak", "PEAK", .flags = GPC_OBJECT };
	uint64_t start_ns = report->recording->header.start_monotonic_ns;
	const struct gpucache_counters *sum = &totals->sum;
	const struct {
		uint64_t bytes;
		const char *words;
	} rows[] = { { sum->peak_pending_bytes, "freed, but not yet safe to use again" },
		{ sum->peak_host_bytes, "of pinned host memory" },
		{ sum->peak_spilled_bytes, "spilled to host memory" } };
	const uint64_t taken = gpc_bytes_add(sum->peak_reserved_bytes, sum->peak_direct_bytes);
	struct gpc_document *doc = report->doc;
	struct gpucache_peak peak;
	bool is_known = gpc_recording_find_peak(report->recording, ordinal, &peak);

	gpc_document_open(doc, &section);
	tell_counters(report, sum, GPC_WHEN_PEAK);
	gpc_document_member(doc, "time", gpc_page_time(report, is_known ? peak.time_ns : 0));
	if (is_known)
		gpc_document_say(doc, "%s in use, %s taken from the GPU at that moment",
			gpc_show_bytes(peak.requested_bytes), gpc_show_bytes(peak.reserved_bytes));
	if (!is_known || peak.reserved_bytes < taken)
		gpc_document_say(
			doc, "up to %s taken from the GPU in the run", gpc_show_bytes(taken));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].bytes)
			gpc_document_say(
				doc, "and %s %s", gpc_show_bytes(rows[i].bytes), rows[i].words);
	if (is_known && peak.time_ns >= start_ns)
		gpc_document_say(doc, "at %s, %s after the start",
			gpc_show_time(gpc_report_realtime(report->recording, peak.time_ns)),
			gpc_show_duration(peak.time_ns - start_ns));
	gpc_document_close(doc);
}

/* ---- a GPU ---- */

static void show_holders(const struct gpc_report *report, const struct gpc_moment *moment)
{
	const char *words = gpc_moment_words(moment, report);
	struct gpc_holdings holdings;
	GPC_TEXT(title, 400);

	gpc_holdings_at(&holdings, report, moment);
	if (!moment->is_there) {
		gpc_text_add(&title, "%s",
			moment->at == GPC_AT_OOM ? "memory did not run out on it"
						 : "no peak was recorded");
	} else if (moment->at == GPC_AT_END &&
		   report->recording->regions[GPUCACHE_REGION_BLOCKS].count == 0) {
		gpc_text_add(&title, "unknown: BLOCKS cannot be read");
	} else if (holdings.n == 0) {
		gpc_text_add(&title, "none: nothing was live %s", words);
	} else {
		gpc_text_add(
			&title, "%s by call site, %s", gpc_show_bytes(holdings.total_bytes), words);
		gpc_filter_describe(report->options, &title);
	}
	gpc_holdings_show(&holdings, report, N_HOLDERS, title.buf);
	gpc_holdings_fini(&holdings);
}

/* Says the GPU's other names, and the verdict of a failure on this GPU if WHY explains another failure. */
static void say_names(struct gpc_document *doc, const struct gpucache_device *device,
	const struct gpucache_oom *oom, const struct gpc_failure *fatal)
{
	GPC_TEXT(text, 120);

	gpc_report_add_names(device, &text);
	if (text.len)
		gpc_document_say(doc, "%s", text.buf);
	if (oom && fatal && oom->number != fatal->oom.number)
		gpc_document_say(doc, "%s (%s): gpumem-report oom %llu",
			gpc_cause_word(oom->verdict), gpc_strength_word(oom->strength),
			(unsigned long long)oom->number);
}

static void show_no_balance(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment)
{
	struct gpc_document *doc = report->doc;

	gpc_document_member(doc, "balance", gpc_blank());
	gpc_document_open_text(doc, "BALANCE");
	gpc_document_say(doc, "GPU %d: %s", device->ordinal,
		moment->at == GPC_AT_END   ? "the library never asked the driver how full it is"
		: moment->at == GPC_AT_OOM ? "memory did not run out on it"
					   : "only the holders of its peak are recorded");
	say_names(doc, device, NULL, NULL);
	gpc_document_close(doc);
}

static void show_balance(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment, const struct gpc_failure *fatal,
	const struct gpucache_counters *sum)
{
	static const struct gpc_section section = { "balance", "BALANCE", gpc_sheet_columns, 4,
		.flags = GPC_SHEET_FLAGS };
	const struct gpucache_oom *oom = gpc_moment_oom(moment);
	struct gpc_document *doc = report->doc;
	struct gpucache_balance balance;

	if (!oom && (moment->at != GPC_AT_END ||
			    !gpc_recording_balance(report->recording, device, &balance))) {
		show_no_balance(report, device, moment);
		return;
	}
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "GPU %d, %s, %s", device->ordinal, device->name,
		gpc_moment_words(moment, report));
	say_names(doc, device, oom, fatal);
	gpc_torch_show_sheet(report, device->ordinal, oom ? &oom->balance : &balance,
		oom ? oom->kind_bytes : sum->kind_bytes, oom);
	gpc_document_close(doc);
}

static void show_device(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment, const struct gpc_failure *fatal)
{
	struct gpc_device_totals totals = gpc_recording_totals(report->recording, device->ordinal);
	const char *words = gpc_moment_words(moment, report);
	struct gpc_document *doc = report->doc;

	gpc_page_open_device(doc, device);
	gpc_document_member(doc, "moment", gpc_name(gpc_moment_key(moment, report)));
	if (gpc_document_is_whole(doc))
		tell_verdict(report, device->ordinal, fatal);
	show_balance(report, device, moment, fatal, &totals.sum);
	gpc_document_open_object(doc, "now");
	tell_counters(report, &totals.sum, GPC_WHEN_HEAP);
	tell_counters(report, &totals.sum, GPC_WHEN_BESIDE);
	gpc_document_close(doc);
	show_peak(report, device->ordinal, &totals);
	gpc_torch_tell(report, device->ordinal);
	gpc_framework_show(report, device);
	show_holders(report, moment);
	if (moment->at != GPC_AT_PEAK)
		gpc_tag_rows_show(report, device->ordinal, gpc_moment_oom(moment), words);
	if (moment->at == GPC_AT_END)
		gpc_asker_rows_show(report, device->ordinal, words);
	show_calls(report, device->ordinal, &totals.sum);
	gpc_document_close(doc);
}

/* The GPU that WHY is about comes first.  Text leaves out GPUs that the process did not use. */
static void show_devices(const struct gpc_report *report, const struct gpc_failure *fatal)
{
	struct gpc_document *doc = report->doc;
	bool is_whole = gpc_document_is_whole(doc);
	struct gpucache_device device;
	struct gpc_moment moment;
	unsigned n_used = 0;

	gpc_document_open(doc, &gpc_page_devices);
	for (unsigned round = fatal ? 0 : 1; round < 2; round++)
		for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
			gpc_moment_find(&moment, report, device.ordinal);
			if (fatal && (device.ordinal == fatal->oom.device) == (round == 1))
				continue;
			if (!is_whole && !gpc_moment_is_used(report, &moment))
				continue;
			show_device(report, &device, &moment, fatal);
			n_used++;
		}
	gpc_document_close(doc);
	gpc_document_open_text(doc, "BALANCE");
	if (n_used == 0)
		gpc_document_say(doc, "%s",
			report->options->device >= 0 ? "that GPU was not used" : "no GPU was used");
	gpc_document_close(doc);
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

static void say_next(const struct gpc_report *report, const struct gpucache_oom *fatal)
{
	GPC_TEXT(target, 600);
	struct gpucache_peak peak;
	uint64_t bytes = 0;

	(void)gpc_report_count_live(report, -1, &bytes);
	gpc_report_target(report, &target);
	gpc_document_open_text(report->doc, "NEXT");
	if (fatal || (report->recording->run_state != GPC_RUN_ALIVE && gpc_leaks_exist(report)))
		gpc_document_say(
			report->doc, "gpumem-report %s%s", fatal ? "oom" : "leaks", target.buf);
	/* Without a failure, a peak well above the live bytes is what a reader asks about next. */
	if (!fatal && report->options->moment == GPC_AT_USUAL && find_any_peak(report, &peak) &&
		peak.requested_bytes > gpc_bytes_add(bytes, bytes / 8))
		gpc_document_say(report->doc, "gpumem-report --at=peak%s", target.buf);
	gpc_document_close(report->doc);
}

enum gpc_exit gpc_cmd_summary(struct gpc_report *report)
{
	struct gpucache_oom oom;
	const struct gpucache_oom *fatal =
		gpc_report_find_oom(report, -1, true, &oom) ? &oom : NULL;
	const unsigned n_recovered = gpc_report_count_ooms(report, true);
	struct gpc_failure failure;

	gpc_page_begin(report, "summary");
	say_headline(report, fatal, n_recovered);
	gpc_document_member(report->doc, "recovered_failures", gpc_count(n_recovered));
	if (fatal) {
		gpc_failure_explain(report, fatal, &failure);
		gpc_failure_show(&failure);
	} else {
		gpc_document_member(report->doc, "verdict", gpc_blank());
	}
	show_devices(report, fatal ? &failure : NULL);
	gpc_page_notes(report);
	say_next(report, fatal);
	gpc_document_end(report->doc);
	return GPC_EXIT_MADE;
}
