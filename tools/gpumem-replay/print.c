/* SPDX-License-Identifier: Apache-2.0 */
/* A table has the figures of each run: a row of text, a member of JSON. */
#include "tools/gpumem-replay/print.h"

#include <stdio.h>

#include "base/saturating.h"
#include "gpucache_format.h"
#include "gpucache_version.h"

#define LABEL_WIDTH  20
#define COLUMN_WIDTH 14

/* Wide enough for a column of each policy. */
#define WIDTH (LABEL_WIDTH + GPC_MAX_POLICIES * 40)

/* ---- the figures ---- */

/* The part of the peak of reserved bytes that exceeds the peak of live bytes. */
static struct gpc_cell fragmentation(const struct gpc_run *run)
{
	return gpc_share(gpc_bytes_less(run->peak_reserved_bytes, run->peak_live_bytes),
		run->peak_reserved_bytes);
}

static struct gpc_cell hit_rate(const struct gpc_run *run)
{
	return gpc_share(run->n_hits, run->n_allocs);
}

static struct gpc_cell smallest(const struct gpc_run *run)
{
	return gpc_bytes(
		run->smallest_device_bytes ? run->smallest_device_bytes : GPUCACHE_UNKNOWN);
}

static struct gpc_cell ns_per_operation(const struct gpc_run *run)
{
	if (run->policy->is_model || !run->n_operations)
		return gpc_blank();
	return gpc_duration((run->elapsed_ns + run->n_operations / 2) / run->n_operations);
}

static struct gpc_cell result(const struct gpc_run *run)
{
	if (run->broken)
		return gpc_name("broken heap");
	if (run->has_failed)
		return gpc_name("failed");
	if (run->n_races)
		return gpc_name("unsafe");
	return gpc_name(run->n_failures_again ? "as then" : "ok");
}

static bool has_smallest(const struct gpc_run *run)
{
	return run->smallest_device_bytes > 0;
}

static bool has_failures(const struct gpc_run *run)
{
	return run->n_failures_served > 0 || run->n_failures_again > 0;
}

static bool has_work(const struct gpc_run *run)
{
	return run->has_work;
}

/* A cell is what `cell` returns; if that is NULL, the number at offset `at` of the run. */
static const struct figure {
	const char *key;
	const char *label; /* NULL: only JSON has it */
	enum gpc_kind kind;
	size_t at;
	struct gpc_cell (*cell)(const struct gpc_run *run);
	bool (*is_shown)(const struct gpc_run *run); /* in text; NULL: always */
} figures[] = {
#define AT(member)  offsetof(struct gpc_run, member)
#define CALLS(kind) GPC_KIND_COUNT, AT(n_calls[GPC_SIM_COST_##kind]), NULL
	{ "device_bytes", NULL, GPC_KIND_BYTES, AT(device_bytes) },
	{ "peak_live_bytes", "peak live", GPC_KIND_BYTES, AT(peak_live_bytes) },
	{ "peak_reserved_bytes", "peak reserved", GPC_KIND_BYTES, AT(peak_reserved_bytes) },
	{ "reserved_at_end_bytes", NULL, GPC_KIND_BYTES, AT(reserved_at_end_bytes) },
	{ "fragmentation", "fragmentation", .cell = fragmentation },
	{ "smallest_device_bytes", "smallest device", .cell = smallest, .is_shown = has_smallest },
	{ "n_driver_calls", "driver calls", GPC_KIND_COUNT, AT(n_driver_calls) },
	{ "n_mem_alloc", "  memory taken", CALLS(MALLOC) },
	{ "n_mem_free", "  memory returned", CALLS(FREE) },
	{ "n_mem_get_info", "  free queried", CALLS(INFO) },
	{ "n_event_create_destroy", "  events created", CALLS(EVENT_CREATE), has_work },
	{ "n_event_record", "  events recorded", CALLS(RECORD), has_work },
	{ "n_event_query", "  events queried", CALLS(QUERY), has_work },
	{ "n_stream_wait", "  stream waits", CALLS(WAIT), has_work },
	{ "n_synchronize", "  host waits", CALLS(SYNC), has_work },
	{ "driver_ns", "published cost", GPC_KIND_DURATION, AT(driver_ns) },
	{ "hit_rate", "hit rate", .cell = hit_rate },
	{ "ns_per_operation", "time per operation", .cell = ns_per_operation },
	{ "n_failures_served", "served, failed then", GPC_KIND_COUNT, AT(n_failures_served), NULL,
		has_failures },
	{ "n_failures_again", "failed, as then", GPC_KIND_COUNT, AT(n_failures_again), NULL,
		has_failures },
	{ "peak_pending_bytes", "peak pending", GPC_KIND_BYTES, AT(peak_pending_bytes), NULL,
		has_work },
	{ "n_waits", "waits", GPC_KIND_COUNT, AT(n_waits), NULL, has_work },
	{ "waited_ns", "waited", GPC_KIND_DURATION, AT(waited_ns), NULL, has_work },
	{ "program_ns", "program time", GPC_KIND_DURATION, AT(program_ns), NULL, has_work },
	{ "n_races", "races", GPC_KIND_COUNT, AT(n_races), NULL, has_work },
	{ "result", "result", .cell = result },
#undef CALLS
#undef AT
};

#define N_FIGURES (sizeof figures / sizeof figures[0])

static struct gpc_cell cell_of(const struct figure *figure, const struct gpc_run *run)
{
	if (figure->cell)
		return figure->cell(run);
	return (struct gpc_cell){ .kind = figure->kind & 0xff,
		.number = *(const uint64_t *)(const void *)((const char *)run + figure->at) };
}

/* ---- the trace ---- */

static void note(struct gpc_document *doc, const char *key, uint64_t n, const char *what)
{
	gpc_document_member(doc, key, gpc_count(n));
	if (n)
		gpc_document_say(doc, "  %llu %s", (unsigned long long)n, what);
}

static void show_recorded(struct gpc_document *doc, const struct gpc_trace *trace)
{
	const struct gpc_trace_recorded *recorded = &trace->recorded;
	GPC_TEXT(events, 120);
	GPC_TEXT(held, 40);

	if (!trace->is_recording) {
		gpc_document_member(doc, "recording", gpc_blank());
		return;
	}
	gpc_text_add_bytes(&held, recorded->held_before_bytes);
	if (recorded->first_event)
		gpc_text_add(&events, "events %llu..%llu of %llu of the recording",
			(unsigned long long)recorded->first_event,
			(unsigned long long)recorded->last_event,
			(unsigned long long)recorded->n_events);
	else
		gpc_text_add(&events, "no events in the recording");
	gpc_document_open(doc, &(const struct gpc_section){ "recording", .flags = GPC_OBJECT });
	gpc_document_say(doc, "  %s, GPU %d; %llu blocks of %s held before", events.buf,
		recorded->device, (unsigned long long)recorded->n_held_before, held.buf);
	gpc_document_member(doc, "device", gpc_number((uint64_t)recorded->device));
	gpc_document_member(doc, "gpu", gpc_name(recorded->gpu));
	gpc_document_member(doc, "total_bytes", gpc_bytes(gpc_unless_zero(recorded->total_bytes)));
	gpc_document_member(doc, "failed", gpc_truth(recorded->has_failed));
	gpc_document_member(doc, "first_event", gpc_number(recorded->first_event));
	gpc_document_member(doc, "last_event", gpc_number(recorded->last_event));
	gpc_document_member(doc, "n_events", gpc_count(recorded->n_events));
	gpc_document_member(doc, "n_held_before", gpc_count(recorded->n_held_before));
	gpc_document_member(doc, "held_before_bytes", gpc_bytes(recorded->held_before_bytes));
	note(doc, "n_missing_events", recorded->n_missing, "events are missing in between");
	note(doc, "n_torn", recorded->n_torn, "blocks are torn, and left out");
	note(doc, "n_other_device_events", recorded->n_other_devices,
		"events of other GPUs were left out; see --device");
	gpc_document_close(doc);
}

void gpc_print_open_trace(struct gpc_document *doc, const struct gpc_trace *trace)
{
	static const struct gpc_section element = { .flags = GPC_OBJECT };
	GPC_TEXT(n_ops, 40);
	GPC_TEXT(fixed, 40);

	gpc_cell_write(&n_ops, gpc_count(trace->n_ops));
	gpc_document_gap(doc);
	gpc_document_open(doc, &element);
	gpc_document_say(doc, "%s: %s operations on %u stream%s", trace->path, n_ops.buf,
		trace->n_streams, trace->n_streams == 1 ? "" : "s");
	gpc_document_member(doc, "path", gpc_name(trace->path));
	gpc_document_member(doc, "n_operations", gpc_count(trace->n_ops));
	gpc_document_member(doc, "n_streams", gpc_count(trace->n_streams));
	gpc_document_member(doc, "fixed_bytes", gpc_bytes(trace->fixed_bytes));
	gpc_document_member(doc, "peak_live_bytes", gpc_bytes(trace->peak_live_bytes));
	note(doc, "n_work", trace->n_work, "of them are work of the device");
	show_recorded(doc, trace);
	gpc_text_add_bytes(&fixed, trace->fixed_bytes);
	if (trace->fixed_bytes)
		gpc_document_say(
			doc, "  %s of other kinds of memory are held throughout", fixed.buf);
	note(doc, "n_unknown_frees", trace->n_unknown_frees,
		"frees of what the trace does not allocate were left out");
	note(doc, "n_implied_frees", trace->n_implied_frees,
		"addresses were given out again without a free; it is implied");
	note(doc, "n_failures", trace->n_failures, "requests had failed when the trace was taken");
}

/* ---- runs ---- */

static const char *why_of(const struct gpc_run *run)
{
	if (run->broken)
		return run->broken;
	return run->has_failed ? gpc_status_text(run->failure)
			       : "memory was reused while work could still use it";
}

void gpc_print_open_run(struct gpc_document *doc, const struct gpc_run *run)
{
	static const struct gpc_section element = { .flags = GPC_OBJECT };

	gpc_document_open(doc, &element);
	gpc_document_member(doc, "policy", gpc_name(run->policy->name));
	for (size_t i = 0; i < N_FIGURES; i++)
		gpc_document_member(doc, figures[i].key,
			figures[i].is_shown == has_work && !run->has_work
				? gpc_blank()
				: cell_of(&figures[i], run));
	if (gpc_run_is_good(run)) {
		gpc_document_member(doc, "failure", gpc_blank());
		return;
	}
	gpc_document_open_object(doc, "failure");
	gpc_document_member(doc, "event", gpc_number(run->failed_event));
	gpc_document_member(doc, "line", gpc_number(run->failed_line));
	gpc_document_member(doc, "size_bytes", gpc_bytes(run->failed_size));
	gpc_document_member(doc, "why", gpc_name(why_of(run)));
	gpc_document_close(doc);
}

void gpc_print_columns(
	struct gpc_column columns[], const struct gpc_run *runs, unsigned n, int width)
{
	columns[0] = (struct gpc_column){ NULL, "", -LABEL_WIDTH };
	for (unsigned i = 0; i < n; i++)
		columns[i + 1] =
			(struct gpc_column){ NULL, runs[i].policy->name, width, GPC_TIGHT };
}

static void show_table(struct gpc_document *doc, const struct gpc_run *runs, unsigned n_runs)
{
	struct gpc_column columns[1 + GPC_MAX_POLICIES];
	const struct gpc_section section = { NULL, NULL, columns, n_runs + 1,
		.flags = GPC_TEXT_ONLY };

	gpc_print_columns(columns, runs, n_runs, COLUMN_WIDTH);
	gpc_document_open(doc, &section);
	for (size_t i = 0; i < N_FIGURES; i++) {
		struct gpc_cell cells[1 + GPC_MAX_POLICIES] = { gpc_name(figures[i].label) };

		if (!figures[i].label || (figures[i].is_shown && !figures[i].is_shown(&runs[0])))
			continue;
		for (unsigned run = 0; run < n_runs; run++)
			cells[run + 1] = cell_of(&figures[i], &runs[run]);
		gpc_document_row_of(doc, cells, n_runs + 1);
	}
	gpc_document_close(doc);
}

/* A run that failed may be served here: by another allocator, or because there is more memory. */
static void say_where(
	struct gpc_document *doc, const struct gpc_trace *trace, uint64_t device_bytes)
{
	const struct gpc_trace_recorded *recorded = &trace->recorded;
	GPC_TEXT(total, 40);
	GPC_TEXT(here, 40);

	if (!recorded->total_bytes)
		return;
	gpc_text_add_bytes(&total, recorded->total_bytes);
	gpc_text_add_bytes(&here, device_bytes);
	gpc_document_say(doc, "  recorded on %s, %s%s; replayed with %s", recorded->gpu, total.buf,
		recorded->has_failed ? ", where it ran out of memory" : "", here.buf);
}

void gpc_print_trace(struct gpc_document *doc, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs)
{
	gpc_print_open_trace(doc, trace);
	say_where(doc, trace, runs[0].device_bytes);
	show_table(doc, runs, n_runs);
	gpc_document_open(doc, &(const struct gpc_section){ "runs", .flags = GPC_JSON_ONLY });
	for (unsigned i = 0; i < n_runs; i++) {
		gpc_print_open_run(doc, &runs[i]);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
	gpc_document_close(doc);
}

/* ---- the document ---- */

static const struct gpc_section traces = { "traces" };

static void put(void *self, const char *bytes, size_t n)
{
	fwrite(bytes, 1, n, self);
}

void gpc_print_begin(struct gpc_document *doc, bool is_json)
{
	*doc = (struct gpc_document){ .renderer = is_json ? &gpc_render_json : &gpc_render_text,
		.put = put,
		.self = stdout,
		.width = WIDTH };
	gpc_document_begin(doc);
	gpc_document_member(doc, "schema", gpc_name("gpumem.replay/2"));
	gpc_document_member(doc, "tool_version", gpc_name(GPUCACHE_VERSION));
	gpc_document_open(doc, &traces);
}

void gpc_print_end(struct gpc_document *doc)
{
	gpc_document_close(doc);
	gpc_document_end(doc);
}
