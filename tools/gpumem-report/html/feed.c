/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `html`: one self-contained file for a browser: the page, D3, and one object of data per recording:
 *
 *      summary, ooms            the --json output of commands, verbatim: the page and the terminal cannot differ
 *      frames, stacks, tags     each name once; everything else refers to its number (name_table.h)
 *      devices[]                history, peak, failures, end and moments with their holders; heap: segments and cells
 *
 * Times are nanoseconds after the start of the recorded process.  Holders are flat arrays: stack, bytes, blocks, ...
 * The data is written while the recording is read, so that it need not fit into memory.
 */
#include <stdlib.h>
#include <unistd.h>

#include "format/balance.h"
#include "format/memory.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/holdings.h"
#include "tools/gpumem-report/holders/over_time.h"
#include "tools/gpumem-report/html/heap_cells.h"
#include "tools/gpumem-report/html/name_table.h"

/* The page has the output of `oom` for this many failures, the last ones. */
#define MAX_OOMS 16

/* The page before and after the data (html/rules.mk).  Both are empty if the tool was built without D3. */
extern const char gpc_html_head[];
extern const char gpc_html_head_end[];
extern const char gpc_html_tail[];
extern const char gpc_html_tail_end[];

struct run {
	const struct gpc_report *report;
	struct gpc_html_names *names;
	FILE *out;
};

typedef unsigned long long ull;

/* Writes what the command `view` prints with --json; `number` is the number of a failure, for `oom`. */
static void put_view(
	const struct run *run, enum gpc_exit (*view)(struct gpc_report *), uint64_t number)
{
	struct gpc_options options = *run->report->options;
	struct gpc_report report = *run->report;
	char *text = NULL;
	size_t size = 0;
	FILE *out = gpc_checked(open_memstream(&text, &size));

	options.json = true;
	options.number = number;
	options.limit = 0;
	report.options = &options;
	report.paper.out = out;
	(void)view(&report);
	fclose(out);
	gpc_html_put_json(run->out, text && *text ? text : "null");
	free(text);
}

static ull after_start(const struct run *run, uint64_t monotonic_ns)
{
	return gpc_bytes_less(monotonic_ns, run->report->recording->header.start_monotonic_ns);
}

/* Writes a comma, the name and the bytes: null if they are unknown. */
static void put_field(const struct run *run, const char *name, uint64_t bytes)
{
	if (bytes == GPUCACHE_UNKNOWN)
		fprintf(run->out, ",\"%s\":null", name);
	else
		fprintf(run->out, ",\"%s\":%llu", name, (ull)bytes);
}

/* The page's number of a stack.  The memory of a context or module (kind not 0) has a number of its own. */
static unsigned stack_number(const struct run *run, uint32_t stack, uint32_t kind)
{
	const struct gpc_export_sample sample = { .stack = stack,
		.what = kind ? gpc_kind_words(kind) : NULL };

	return gpc_html_names_stack(run->names, &sample);
}

/* Writes the field `holders`. */
static void put_holders(const struct run *run, const struct gpc_holdings *holdings)
{
	fputs(",\"holders\":[", run->out);
	for (size_t i = 0; i < holdings->n; i++) {
		const struct gpc_row *row = &holdings->rows[i];

		fprintf(run->out, "%s%u,%llu,%llu", i ? "," : "",
			stack_number(run, row->id, row->kind), (ull)row->bytes, (ull)row->n_blocks);
	}
	fputc(']', run->out);
}

/* Writes the holders.  PyTorch's bytes in no tensor, and the bytes of unlisted holders, are separate fields. */
static void put_holdings(const struct run *run, const struct gpc_holdings *holdings)
{
	put_holders(run, holdings);
	put_field(run, "torch_unused", holdings->torch_bytes);
	put_field(run, "rest", gpc_bytes_add(holdings->rest_bytes, holdings->refused_bytes));
}

/* Writes an array of numbers; null if `numbers` is NULL. */
static void put_numbers(const struct run *run, const uint64_t *numbers, size_t n)
{
	if (!numbers) {
		fputs("null", run->out);
		return;
	}
	for (size_t i = 0; i < n; i++)
		fprintf(run->out, "%c%llu", i ? ',' : '[', (ull)numbers[i]);
	fputs(n ? "]" : "[]", run->out);
}

static void put_history(const struct run *run, int32_t ordinal)
{
	static const size_t fields[] = { offsetof(struct gpucache_point, time_ns),
		offsetof(struct gpucache_point, requested_bytes),
		offsetof(struct gpucache_point, live_bytes),
		offsetof(struct gpucache_point, reserved_bytes) };
	static const char *const keys[] = { "t", "requested", "live", "reserved" };
	struct gpc_history_view history;

	(void)gpc_recording_find_history(run->report->recording, ordinal, &history);
	fputs(",\"history\":{", run->out);
	for (size_t f = 0; f < 4; f++) {
		fprintf(run->out, "%s\"%s\":[", f ? "," : "", keys[f]);
		for (size_t p = 0; p < history.n_points; p++) {
			const char *point = (const char *)&history.points[p];
			uint64_t value = *(const uint64_t *)(const void *)(point + fields[f]);

			fprintf(run->out, "%s%llu", p ? "," : "",
				f ? (ull)value : after_start(run, value));
		}
		fputc(']', run->out);
	}
	fputs(",\"pending\":", run->out);
	put_numbers(run, history.pending_bytes, history.n_points);
	fputc('}', run->out);
}

static void put_peak(const struct run *run, int32_t ordinal)
{
	struct gpc_holdings holdings;
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(run->report->recording, ordinal, &peak))
		return;
	gpc_holdings_from_peak(&holdings, run->report, &peak);
	fprintf(run->out, ",\"peak\":{\"t\":%llu", after_start(run, peak.time_ns));
	put_field(run, "requested", peak.requested_bytes);
	put_field(run, "live", peak.live_bytes);
	put_field(run, "reserved", peak.reserved_bytes);
	put_holders(run, &holdings);
	put_field(run, "rest", holdings.rest_bytes);
	fputc('}', run->out);
	gpc_holdings_fini(&holdings);
}

static void put_end(const struct run *run, int32_t ordinal)
{
	struct gpc_holdings holdings;

	gpc_holdings_from_live(&holdings, run->report, ordinal);
	fprintf(run->out, ",\"end\":{\"t\":%llu",
		after_start(run, gpc_recording_last_ns(run->report->recording)));
	put_holdings(run, &holdings);
	fputc('}', run->out);
	gpc_holdings_fini(&holdings);
}

static void put_failures(const struct run *run, int32_t ordinal)
{
	const struct gpc_recording *rec = run->report->recording;
	struct gpc_holdings holdings;
	struct gpucache_oom oom;
	bool is_first = true;

	fputs(",\"ooms\":[", run->out);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.device != ordinal)
			continue;
		gpc_holdings_from_oom(&holdings, run->report, &oom);
		fprintf(run->out, "%s{\"t\":%llu,\"number\":%llu,\"recovered\":%s",
			is_first ? "" : ",", after_start(run, oom.time_ns), (ull)oom.number,
			oom.recovered ? "true" : "false");
		is_first = false;
		put_field(run, "requested", oom.requested);
		put_field(run, "limit", oom.limit ? oom.limit : GPUCACHE_UNKNOWN);
		put_holdings(run, &holdings);
		fputc('}', run->out);
		gpc_holdings_fini(&holdings);
	}
	fputc(']', run->out);
}

static void put_moments(const struct run *run, int32_t ordinal)
{
	struct gpc_moments moments;
	size_t n_deltas;

	gpc_moments_create(&moments, run->report, ordinal);
	n_deltas = moments.n ? moments.rows[moments.n - 1].end_delta : 0;
	fprintf(run->out, ",\"moments\":{\"n_events\":%llu,\"n_holes\":%llu,\"rows\":[",
		(ull)moments.n_events, (ull)moments.n_holes);
	for (size_t i = 0; i < moments.n; i++)
		fprintf(run->out, "%s%llu,%llu,%u,%zu", i ? "," : "",
			after_start(run, moments.rows[i].time_ns), (ull)moments.rows[i].live_bytes,
			gpc_html_names_tag(run->names, moments.rows[i].tag),
			moments.rows[i].end_delta);
	fputs("],\"deltas\":[", run->out);
	for (size_t i = 0; i < n_deltas; i++) {
		const struct gpc_moment_delta *delta = &moments.deltas[i];
		const struct gpc_moment_holder *holder = &moments.holders[delta->holder];

		fprintf(run->out, "%s%u,%lld,%lld", i ? "," : "",
			stack_number(run, holder->stack, holder->kind), (long long)delta->bytes,
			(long long)delta->blocks);
	}
	fputs("]}", run->out);
	gpc_moments_fini(&moments);
}

static void put_segment(
	const struct run *run, const struct gpc_heap_segment *segment, unsigned long first)
{
	fprintf(run->out,
		"%s{\"address\":\"0x%llx\",\"size\":%llu,\"t\":%llu,\"stack\":%u,\"kind\":",
		first ? ",\n" : "", (ull)segment->address, (ull)segment->size,
		after_start(run, segment->time_ns), stack_number(run, segment->stack, 0));
	gpc_html_put_text(run->out, gpc_kind_words(segment->kind));
	fprintf(run->out, ",\"ours\":%s,\"bytes\":[", segment->is_ours ? "true" : "false");
	for (unsigned i = 0; i < GPC_CELL_STATE_COUNT; i++)
		fprintf(run->out, "%s%llu", i ? "," : "", (ull)segment->bytes[i]);
	fprintf(run->out, "],\"n_pins\":%llu,\"pins\":[", (ull)segment->n_pins);
	for (unsigned i = 0; i < GPC_HEAP_MAX_PINS && segment->pins[i].n_blocks; i++)
		fprintf(run->out, "%s%u,%llu,%llu", i ? "," : "",
			stack_number(run, segment->pins[i].id, 0), (ull)segment->pins[i].bytes,
			(ull)segment->pins[i].n_blocks);
	fprintf(run->out, "],\"end\":%zu}", segment->end_cell);
}

static void put_heap(const struct run *run, int32_t ordinal)
{
	struct gpc_heap_view heap;

	gpc_heap_view_create(&heap, run->report, ordinal);
	fprintf(run->out, ",\"heap\":{\"merged\":%s,\"words\":[",
		heap.is_merged ? "true" : "false");
	for (unsigned i = 0; i < GPC_CELL_STATE_COUNT; i++) {
		fputs(i ? "," : "", run->out);
		gpc_html_put_text(run->out, gpc_cell_word(i));
	}
	fputs("],\"segments\":[", run->out);
	for (size_t i = 0; i < heap.n_segments; i++)
		put_segment(run, &heap.segments[i], i);
	fputs("],\"cells\":[", run->out);
	for (size_t i = 0; i < heap.n_cells; i++) {
		const struct gpc_cell *cell = &heap.cells[i];

		fprintf(run->out, "%s%llu,%llu,%u,%u,%u", i ? "," : "", (ull)cell->size,
			(ull)cell->requested, cell->state, stack_number(run, cell->stack, 0),
			gpc_html_names_tag(run->names, cell->tag));
	}
	fputs("]}", run->out);
	gpc_heap_view_fini(&heap);
}

static void put_device(const struct run *run, const struct gpucache_device *device, bool is_first)
{
	fprintf(run->out, "%s{\"ordinal\":%d", is_first ? "" : ",\n", device->ordinal);
	put_field(run, "total", device->total_bytes);
	/* The bytes in use at the last reading, without this process's.  The page's script adds those of each moment. */
	put_field(run, "outside",
		device->look_ns ? gpc_bytes_less(device->total_bytes,
					  gpc_bytes_add(device->free_bytes, device->ours_bytes))
				: GPUCACHE_UNKNOWN);
	put_history(run, device->ordinal);
	put_peak(run, device->ordinal);
	put_end(run, device->ordinal);
	put_failures(run, device->ordinal);
	put_moments(run, device->ordinal);
	put_heap(run, device->ordinal);
	fputc('}', run->out);
}

static void put_oom_views(const struct run *run)
{
	const struct gpc_recording *rec = run->report->recording;
	struct gpucache_oom oom;
	uint64_t last = gpc_recording_find_oom(rec, 0, &oom) ? oom.number : 0;
	bool is_first = true;

	fputs(",\"ooms\":[", run->out);
	for (uint64_t n = last; n > 0 && n + MAX_OOMS > last; n--) {
		if (!gpc_recording_find_oom(rec, n, &oom))
			continue;
		fputs(is_first ? "" : ",", run->out);
		is_first = false;
		put_view(run, gpc_cmd_oom, n);
	}
	fputc(']', run->out);
}

static void put_run(const struct gpc_report *report)
{
	struct run run = { report, gpc_html_names_create(report), report->paper.out };
	struct gpucache_device device;
	bool is_first = true;

	fputs("{\"summary\":", run.out);
	put_view(&run, gpc_cmd_summary, 0);
	put_oom_views(&run);
	fputs(",\"devices\":[", run.out);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		put_device(&run, &device, is_first);
		is_first = false;
	}
	fputc(']', run.out);
	gpc_html_names_put(run.names, run.out);
	fputc('}', run.out);
	gpc_html_names_destroy(run.names);
}

static bool is_possible(const struct gpc_report *report)
{
	if (&gpc_html_head[0] == &gpc_html_head_end[0])
		gpc_complain(
			"this gpumem-report was built without D3, and can make no page; install "
			"node-d3 (Debian's name) and build again");
	else if (gpc_filter_is_set(report->options))
		gpc_complain("html takes no filters: its page shows everything, and has a search");
	else if (!report->options->output && isatty(STDOUT_FILENO))
		gpc_complain("html does not write to a terminal: name a file, -o report.html");
	else
		return true;
	return false;
}

static void put(const struct gpc_report *report, const char *from, const char *to)
{
	fwrite(from, 1, (size_t)(to - from), report->paper.out);
}

enum gpc_exit gpc_cmd_html(struct gpc_report *report)
{
	static unsigned n_runs;

	if (!report->recording) {
		if (n_runs) {
			fputs("]}", report->paper.out);
			put(report, gpc_html_tail, gpc_html_tail_end);
		}
		n_runs = 0;
		return GPC_EXIT_MADE;
	}
	if (n_runs == 0 && !is_possible(report))
		return GPC_EXIT_USAGE;
	if (n_runs == 0) {
		put(report, gpc_html_head, gpc_html_head_end);
		fputs("{\"schema\":\"gpumem.html/1\",\"runs\":[", report->paper.out);
	}
	fputs(n_runs++ ? ",\n" : "", report->paper.out);
	put_run(report);
	return GPC_EXIT_MADE;
}
