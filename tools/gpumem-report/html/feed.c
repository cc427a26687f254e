/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `html`: one self-contained file for a browser: the page, D3, and one object of data per recording:
 *
 *      summary, ooms            the --json output of commands, verbatim: the page and the terminal cannot differ
 *      frames, stacks, tags     each name once; everything else refers to its number (name_table.h)
 *      devices[]                history, peak, failures, end and moments with their holders; levels: the bytes live,
 *                               idle in PyTorch's cache, reserved, and of each purpose at each moment;
 *                               heaps: segments and cells at the peak, at the last failures, and at the end
 *
 * Times are nanoseconds after the start of the recorded process.  Holders are flat arrays: stack, bytes, blocks, ...
 * The data is a document (document/document.h), written while the recording is read: it need not fit into memory.
 */
#include <stdlib.h>
#include <unistd.h>

#include "format/memory.h"
#include "format/sheet.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/holders/over_time.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/html/heap_cells.h"
#include "tools/gpumem-report/html/name_table.h"
#include "tools/gpumem-report/output/page.h"

/* The page has the output of `oom` for this many failures, the last ones. */
#define MAX_OOMS 16

/* The heap is drawn at this many failures of a GPU, the last ones. */
#define MAX_HEAPS 3

/* The page before and after the data (html/rules.mk).  Both are empty if the tool was built without D3. */
extern const char gpc_html_head[];
extern const char gpc_html_head_end[];
extern const char gpc_html_tail[];
extern const char gpc_html_tail_end[];

struct run {
	const struct gpc_report *report;
	struct gpc_html_names *names;
	struct gpc_document *doc;
};

static const struct gpc_section element = { .flags = GPC_OBJECT };

/* Adds the members that the command `view` has with --json; `number` is the number of a failure, for `oom`. */
static void show_view(
	const struct run *run, enum gpc_exit (*view)(struct gpc_report *), uint64_t number)
{
	struct gpc_options options = *run->report->options;
	struct gpc_report report = *run->report;

	options.json = true;
	options.number = number;
	options.limit = 0;
	report.options = &options;
	report.doc = run->doc;
	(void)view(&report);
}

static struct gpc_cell after_start(const struct run *run, uint64_t monotonic_ns)
{
	return gpc_number(
		gpc_bytes_less(monotonic_ns, run->report->recording->header.start_monotonic_ns));
}

/* The page's number of a stack.  The memory of a context or module (kind not 0) has a number of its own. */
static struct gpc_cell stack_number(const struct run *run, uint32_t stack, uint32_t kind)
{
	const struct gpc_export_sample sample = { .stack = stack,
		.what = kind ? gpc_kind_words(kind) : NULL };

	return gpc_number(gpc_html_names_stack(run->names, &sample));
}

/* The bytes of each purpose, in the order of purpose.def. */
static void show_purposes(const struct run *run, const struct gpc_holdings *holdings)
{
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	uint64_t bytes[GPC_N_PURPOSES] = { 0 };

	if (holdings->has_torch)
		(void)gpc_purposes_sum(holdings, run->report, rows);
	for (unsigned i = 0; holdings->has_torch && i < GPC_N_PURPOSES; i++)
		bytes[rows[i].purpose] = rows[i].bytes;
	gpc_document_open_flat(run->doc, "purposes");
	for (unsigned i = 0; i < GPC_N_PURPOSES; i++)
		gpc_document_row(run->doc, gpc_bytes(bytes[i]));
	gpc_document_close(run->doc);
}

static void show_holders(const struct run *run, const struct gpc_holdings *holdings)
{
	gpc_document_open_flat(run->doc, "holders");
	for (size_t i = 0; i < holdings->n; i++) {
		const struct gpc_row *row = &holdings->rows[i];

		gpc_document_row(run->doc, stack_number(run, row->id, row->kind),
			gpc_bytes(row->bytes), gpc_count(row->n_blocks));
	}
	gpc_document_close(run->doc);
	/* PyTorch's bytes in no tensor, and the bytes of unlisted holders. */
	gpc_document_member(run->doc, "torch_unused", gpc_bytes(holdings->torch_bytes));
	gpc_document_member(
		run->doc, "unused_is", gpc_name(gpc_framework_words(holdings->framework)->unused));
	gpc_document_member(run->doc, "rest",
		gpc_bytes(gpc_bytes_add(holdings->rest_bytes, holdings->refused_bytes)));
	show_purposes(run, holdings);
}

/* Adds the array of one member of the history's points. */
static void show_points(const struct run *run, const char *key,
	const struct gpc_history_view *history, size_t offset)
{

	gpc_document_open_flat(run->doc, key);
	for (size_t i = 0; i < history->n_points; i++) {
		const char *point = (const char *)&history->points[i];
		uint64_t value = *(const uint64_t *)(const void *)(point + offset);

		gpc_document_row(run->doc, offset == offsetof(struct gpucache_point, time_ns)
						   ? after_start(run, value)
						   : gpc_bytes(value));
	}
	gpc_document_close(run->doc);
}

static void show_history(const struct run *run, int32_t ordinal)
{
	struct gpc_history_view history;

	(void)gpc_recording_find_history(run->report->recording, ordinal, &history);
	gpc_document_open_object(run->doc, "history");
	gpc_document_member(run->doc, "interval", gpc_number(history.interval_ns));
	show_points(run, "t", &history, offsetof(struct gpucache_point, time_ns));
	show_points(run, "requested", &history, offsetof(struct gpucache_point, requested_bytes));
	show_points(run, "live", &history, offsetof(struct gpucache_point, live_bytes));
	show_points(run, "reserved", &history, offsetof(struct gpucache_point, reserved_bytes));
	gpc_document_open_flat(run->doc, "pending");
	for (size_t i = 0; i < history.n_points; i++)
		gpc_document_row(run->doc, gpc_bytes(history.pending_bytes[i]));
	gpc_document_close(run->doc);
	gpc_document_close(run->doc);
}

static void show_peak(const struct run *run, int32_t ordinal)
{
	struct gpc_holdings holdings;
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(run->report->recording, ordinal, &peak))
		return;
	gpc_holdings_from_peak(&holdings, run->report, &peak);
	gpc_document_open_object(run->doc, "peak");
	gpc_document_member(run->doc, "t", after_start(run, peak.time_ns));
	gpc_document_member(run->doc, "requested", gpc_bytes(peak.requested_bytes));
	gpc_document_member(run->doc, "live", gpc_bytes(peak.live_bytes));
	gpc_document_member(run->doc, "reserved", gpc_bytes(peak.reserved_bytes));
	show_holders(run, &holdings);
	gpc_document_close(run->doc);
	gpc_holdings_fini(&holdings);
}

static void show_end(const struct run *run, int32_t ordinal)
{
	struct gpc_holdings holdings;

	gpc_holdings_from_live(&holdings, run->report, ordinal);
	gpc_document_open_object(run->doc, "end");
	gpc_document_member(
		run->doc, "t", after_start(run, gpc_recording_last_ns(run->report->recording)));
	show_holders(run, &holdings);
	gpc_document_close(run->doc);
	gpc_holdings_fini(&holdings);
}

/* The levels in the balance of the failure: live, idle in PyTorch's cache, pending, reserved. */
static void show_balance(const struct run *run, const struct gpucache_oom *oom)
{
	const uint64_t idle = gpc_torch_at(oom).unused;
	const uint64_t held = gpc_bytes_add(oom->balance.requested,
		gpc_bytes_add(oom->balance.rounding,
			gpc_bytes_less(oom->balance.direct, oom->kind_bytes[GPUCACHE_KIND_POOL])));

	gpc_document_open_flat(run->doc, "levels");
	gpc_document_row(run->doc, gpc_bytes(gpc_bytes_less(held, idle)), gpc_bytes(idle),
		gpc_bytes(oom->balance.pending), gpc_bytes(gpc_balance_taken(&oom->balance)));
	gpc_document_close(run->doc);
}

static void show_failures(
	const struct run *run, int32_t ordinal, const struct gpc_over_time *moments)
{
	static const struct gpc_section section = { "ooms" };
	const struct gpc_recording *rec = run->report->recording;
	struct gpc_holdings holdings;
	struct gpucache_oom oom;

	gpc_document_open(run->doc, &section);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.device != ordinal)
			continue;
		gpc_holdings_from_oom(&holdings, run->report, &oom);
		gpc_document_open(run->doc, &element);
		gpc_document_member(
			run->doc, "t", after_start(run, gpc_over_time_time_of(moments, &oom)));
		gpc_document_member(run->doc, "number", gpc_number(oom.number));
		gpc_document_member(run->doc, "recovered", gpc_truth(oom.recovered));
		gpc_document_member(run->doc, "requested", gpc_bytes(oom.requested));
		gpc_document_member(run->doc, "limit", gpc_bytes(gpc_unless_zero(oom.limit)));
		show_balance(run, &oom);
		show_holders(run, &holdings);
		gpc_document_close(run->doc);
		gpc_holdings_fini(&holdings);
	}
	gpc_document_close(run->doc);
}

static void show_level(const struct run *run, const struct gpc_over_time_level *level)
{
	struct gpc_cell cells[4 + GPC_N_PURPOSES] = { after_start(run, level->time_ns),
		gpc_bytes(level->live_bytes), gpc_bytes(level->idle_bytes),
		gpc_bytes(level->reserved_bytes) };

	for (unsigned i = 0; i < GPC_N_PURPOSES; i++)
		cells[4 + i] = gpc_bytes(level->purposes[i]);
	gpc_document_row_of(run->doc, cells, sizeof cells / sizeof cells[0]);
}

/* For each moment two: the levels then, and at the end of its slice. */
static void show_levels(const struct run *run, const struct gpc_over_time *moments)
{
	gpc_document_open_flat(run->doc, "levels");
	for (size_t i = 0; i < moments->n; i++) {
		show_level(run, &moments->rows[i].most);
		show_level(run, &moments->rows[i].last);
	}
	gpc_document_close(run->doc);
}

/* Each row has the time, the bytes live, the range, where its deltas end, and the events up to it. */
static void show_moments(const struct run *run, const struct gpc_over_time *moments)
{
	const size_t n_deltas = moments->n ? moments->rows[moments->n - 1].end_delta : 0;

	gpc_document_open_object(run->doc, "moments");
	gpc_document_member(run->doc, "n_events", gpc_count(moments->n_events));
	gpc_document_member(run->doc, "n_holes", gpc_count(moments->n_holes));
	gpc_document_open_flat(run->doc, "rows");
	for (size_t i = 0; i < moments->n; i++)
		gpc_document_row(run->doc, after_start(run, moments->rows[i].most.time_ns),
			gpc_bytes(moments->rows[i].most.live_bytes),
			gpc_number(gpc_html_names_tag(run->names, moments->rows[i].tag)),
			gpc_number(moments->rows[i].end_delta),
			gpc_count(moments->rows[i].n_events));
	gpc_document_close(run->doc);
	gpc_document_open_flat(run->doc, "deltas");
	for (size_t i = 0; i < n_deltas; i++) {
		const struct gpc_over_time_delta *delta = &moments->deltas[i];
		const struct gpc_over_time_holder *holder = &moments->holders[delta->holder];

		gpc_document_row(run->doc, stack_number(run, holder->stack, holder->kind),
			gpc_signed(delta->bytes), gpc_signed(delta->blocks));
	}
	gpc_document_close(run->doc);
	gpc_document_close(run->doc);
	show_levels(run, moments);
}

static void show_segment(const struct run *run, const struct gpc_heap_segment *segment)
{
	static const struct gpc_section one_line = { .flags = GPC_OBJECT | GPC_FLAT };
	struct gpc_document *doc = run->doc;
	GPC_TEXT(address, 24);

	gpc_text_add(&address, "0x%llx", (unsigned long long)segment->address);
	gpc_document_open(doc, &one_line);
	gpc_document_member(doc, "address", gpc_name(address.buf));
	gpc_document_member(doc, "size", gpc_bytes(segment->size));
	gpc_document_member(doc, "t",
		segment->time_ns == GPUCACHE_UNKNOWN ? gpc_bytes(GPUCACHE_UNKNOWN)
						     : after_start(run, segment->time_ns));
	gpc_document_member(doc, "stack", stack_number(run, segment->stack, 0));
	gpc_document_member(doc, "kind", gpc_name(gpc_kind_words(segment->kind)));
	gpc_document_member(doc, "ours", gpc_truth(segment->is_ours));
	gpc_document_open_flat(doc, "bytes");
	for (unsigned i = 0; i < GPC_CELL_STATE_COUNT; i++)
		gpc_document_row(doc, gpc_bytes(segment->bytes[i]));
	gpc_document_close(doc);
	gpc_document_member(doc, "n_pins", gpc_count(segment->n_pins));
	gpc_document_open_flat(doc, "pins");
	for (unsigned i = 0; i < GPC_HEAP_MAX_PINS && segment->pins[i].n_blocks; i++)
		gpc_document_row(doc, stack_number(run, segment->pins[i].id, 0),
			gpc_bytes(segment->pins[i].bytes), gpc_count(segment->pins[i].n_blocks));
	gpc_document_close(doc);
	gpc_document_member(doc, "end", gpc_number(segment->end_cell));
	gpc_document_close(doc);
}

/* Adds nothing if the recording does not reach back to that moment.  `kind` is that of the page's moment. */
static void show_heap(
	const struct run *run, int32_t ordinal, const char *kind, uint64_t time_ns, uint64_t end_ns)
{
	static const struct gpc_section segments = { "segments" };
	struct gpc_document *doc = run->doc;
	struct gpc_heap_view heap;

	if (!gpc_heap_view_create(&heap, run->report->recording, ordinal, time_ns))
		return;
	gpc_document_open(doc, &element);
	gpc_document_member(doc, "kind", gpc_name(kind));
	gpc_document_member(
		doc, "t", after_start(run, time_ns == GPC_TIME_OF_END ? end_ns : time_ns));
	gpc_document_member(doc, "merged", gpc_truth(heap.is_merged));
	gpc_document_open(doc, &segments);
	for (size_t i = 0; i < heap.n_segments; i++)
		show_segment(run, &heap.segments[i]);
	gpc_document_close(doc);
	gpc_document_open_flat(doc, "cells");
	for (size_t i = 0; i < heap.n_cells; i++) {
		const struct gpc_heap_cell *cell = &heap.cells[i];

		gpc_document_row(doc, gpc_bytes(cell->size), gpc_bytes(cell->requested),
			gpc_number(cell->state), stack_number(run, cell->stack, 0),
			gpc_number(gpc_html_names_tag(run->names, cell->tag)));
	}
	gpc_document_close(doc);
	gpc_document_close(doc);
	gpc_heap_view_fini(&heap);
}

static void show_heaps(const struct run *run, int32_t ordinal, const struct gpc_over_time *moments)
{
	static const struct gpc_section heaps = { "heaps" };
	const struct gpc_recording *rec = run->report->recording;
	const uint64_t end_ns = gpc_recording_last_ns(rec);
	uint64_t times[MAX_HEAPS] = { 0 };
	uint64_t n = 0;
	struct gpucache_peak peak;
	struct gpucache_oom oom;

	gpc_document_open_flat(run->doc, "cell_words");
	for (unsigned i = 0; i < GPC_CELL_STATE_COUNT; i++)
		gpc_document_row(run->doc, gpc_name(gpc_cell_word(i)));
	gpc_document_close(run->doc);
	gpc_document_open(run->doc, &heaps);
	if (gpc_recording_find_peak(rec, ordinal, &peak))
		show_heap(run, ordinal, "peak", peak.time_ns, end_ns);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		if (gpc_recording_read_oom(rec, i, &oom) && oom.device == ordinal)
			times[n++ % MAX_HEAPS] = gpc_over_time_time_of(moments, &oom);
	for (uint64_t i = n < MAX_HEAPS ? 0 : n - MAX_HEAPS; i < n; i++)
		show_heap(run, ordinal, "oom", times[i % MAX_HEAPS], end_ns);
	show_heap(run, ordinal, "end", GPC_TIME_OF_END, end_ns);
	gpc_document_close(run->doc);
}

/* The purposes, in the order of purpose.def, if PyTorch has or had memory of the device. */
static void show_words(const struct run *run, int32_t ordinal)
{
	const bool has_torch = gpc_torch_is_there(run->report, ordinal);

	gpc_document_open_flat(run->doc, "purpose_words");
	for (unsigned i = 0; has_torch && i < GPC_N_PURPOSES; i++)
		gpc_document_row(run->doc, gpc_name(gpc_purpose_words(i)));
	gpc_document_close(run->doc);
}

static void show_device(const struct run *run, const struct gpucache_device *device)
{
	struct gpc_over_time moments;

	gpc_over_time_create(&moments, run->report, device->ordinal);
	gpc_document_open(run->doc, &element);
	gpc_document_member(run->doc, "ordinal", gpc_number((uint64_t)device->ordinal));
	gpc_document_member(run->doc, "total", gpc_bytes(device->total_bytes));
	/* The bytes in use at the last reading, without this process's.  The page's script adds those of each moment. */
	gpc_document_member(run->doc, "outside",
		gpc_bytes(device->look_ns
				  ? gpc_bytes_less(device->total_bytes,
					    gpc_bytes_add(device->free_bytes, device->ours_bytes))
				  : GPUCACHE_UNKNOWN));
	show_words(run, device->ordinal);
	show_history(run, device->ordinal);
	show_peak(run, device->ordinal);
	show_end(run, device->ordinal);
	show_failures(run, device->ordinal, &moments);
	show_moments(run, &moments);
	show_heaps(run, device->ordinal, &moments);
	gpc_document_close(run->doc);
	gpc_over_time_fini(&moments);
}

static void show_oom_views(const struct run *run)
{
	static const struct gpc_section section = { "ooms" };
	const struct gpc_recording *rec = run->report->recording;
	struct gpucache_oom oom;
	uint64_t last = gpc_recording_find_oom(rec, 0, &oom) ? oom.number : 0;

	gpc_document_open(run->doc, &section);
	for (uint64_t n = last; n > 0 && n + MAX_OOMS > last; n--) {
		if (!gpc_recording_find_oom(rec, n, &oom))
			continue;
		gpc_document_open(run->doc, &element);
		show_view(run, gpc_cmd_oom, n);
		gpc_document_close(run->doc);
	}
	gpc_document_close(run->doc);
}

static void show_run(const struct gpc_report *report, struct gpc_document *doc)
{
	struct run run = { report, gpc_html_names_create(report), doc };
	struct gpucache_device device;

	gpc_document_open(doc, &element);
	gpc_document_open_object(doc, "summary");
	show_view(&run, gpc_cmd_summary, 0);
	gpc_document_close(doc);
	show_oom_views(&run);
	gpc_document_open(doc, &gpc_page_devices);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);)
		show_device(&run, &device);
	gpc_document_close(doc);
	gpc_html_names_show(run.names, doc);
	gpc_document_close(doc);
	gpc_html_names_destroy(run.names);
}

static bool is_possible(const struct gpc_report *report)
{
	if (&gpc_html_head[0] == &gpc_html_head_end[0])
		gpc_complain(
			"this gpumem-report was built without D3, and can make no page; "
			"install "
			"node-d3 (Debian's name) and build again");
	else if (gpc_filter_is_set(report->options))
		gpc_complain(
			"html takes no filters: its page shows everything, and has a "
			"search");
	else if (!report->options->output && isatty(STDOUT_FILENO))
		gpc_complain("html does not write to a terminal: name a file, -o report.html");
	else
		return true;
	return false;
}

static void put(const struct gpc_report *report, const char *from, const char *to)
{
	fwrite(from, 1, (size_t)(to - from), report->out);
}

enum gpc_exit gpc_cmd_html(struct gpc_report *report)
{
	static const struct gpc_section runs = { "runs" };
	static struct gpc_document doc; /* from the first recording to the call without one */
	bool has_begun = doc.n_levels > 0;

	if (report->recording && !has_begun && !is_possible(report))
		return GPC_EXIT_USAGE;
	if (report->recording && !has_begun) {
		put(report, gpc_html_head, gpc_html_head_end);
		doc = (struct gpc_document){
			.renderer = &gpc_render_json, .put = gpc_html_put, .self = report->out
		};
		gpc_document_begin(&doc);
		gpc_document_member(&doc, "schema", gpc_name("gpumem.html/1"));
		gpc_document_open(&doc, &runs);
	}
	if (report->recording) {
		show_run(report, &doc);
	} else if (has_begun) {
		gpc_document_close(&doc);
		gpc_document_end(&doc);
		put(report, gpc_html_tail, gpc_html_tail_end);
	}
	return GPC_EXIT_MADE;
}
