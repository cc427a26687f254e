/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the table is a label and a function that writes a cell.  JSON has keys and an order of its own. */
#include "tools/gpumem-replay/print.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "gpucache_version.h"

#define LABEL_WIDTH  20
#define COLUMN_WIDTH 14

/* The part of the peak of reserved bytes that exceeds the peak of live bytes. */
static double fragmentation(const struct gpc_run *run)
{
	return run->peak_reserved_bytes
		       ? 1 - (double)run->peak_live_bytes / (double)run->peak_reserved_bytes
		       : 0;
}

static double hit_rate(const struct gpc_run *run)
{
	return run->n_allocs ? (double)run->n_hits / (double)run->n_allocs : 0;
}

static double ns_per_operation(const struct gpc_run *run)
{
	return run->n_operations ? (double)run->elapsed_ns / (double)run->n_operations : 0;
}

/* gpc_text_add() formats no fractions, so snprintf() does; stdio is allowed in tools. */
static void add_percent(struct gpc_text *text, double part)
{
	char buf[32];

	(void)snprintf(buf, sizeof buf, "%.2f %%", 100 * part);
	gpc_text_add(text, "%s", buf);
}

static void cell_fragmentation(const struct gpc_run *run, struct gpc_text *text)
{
	add_percent(text, fragmentation(run));
}

static void cell_hits(const struct gpc_run *run, struct gpc_text *text)
{
	add_percent(text, hit_rate(run));
}

static void cell_time(const struct gpc_run *run, struct gpc_text *text)
{
	if (run->policy->is_model)
		gpc_text_add(text, "-");
	else
		gpc_text_add(text, "%u ns", (unsigned)(ns_per_operation(run) + 0.5));
}

static void add_count(struct gpc_text *text, uint64_t n)
{
	gpc_text_add(text, "%" PRIu64, n);
}

static void add_ms(struct gpc_text *text, uint64_t ns)
{
	gpc_text_add(text, "%" PRIu64 " ms", (ns + 500000) / 1000000);
}

static void cell_result(const struct gpc_run *run, struct gpc_text *text)
{
	if (run->broken)
		gpc_text_add(text, "broken heap");
	else if (run->has_failed)
		gpc_text_add(text, "failed");
	else if (run->n_races)
		gpc_text_add(text, "unsafe");
	else
		gpc_text_add(text, "ok");
}

static bool has_smallest(const struct gpc_run *run)
{
	return run->smallest_device_bytes > 0;
}

static bool has_work(const struct gpc_run *run)
{
	return run->has_work;
}

/* A cell is the output of `cell`; if that is NULL, the number at offset `at` of the run, as `add` writes it. */
static const struct row {
	const char *label;
	/* False: the row is left out.  NULL: always true. */
	bool (*is_known)(const struct gpc_run *run);
	void (*cell)(const struct gpc_run *run, struct gpc_text *text);
	void (*add)(struct gpc_text *text, uint64_t number);
	size_t at;
} rows[] = {
#define NUMBER(add, member) NULL, add, offsetof(struct gpc_run, member)
	{ "peak live", NULL, NUMBER(gpc_text_add_bytes, peak_live_bytes) },
	{ "peak reserved", NULL, NUMBER(gpc_text_add_bytes, peak_reserved_bytes) },
	{ "fragmentation", NULL, cell_fragmentation, NULL, 0 },
	{ "smallest device", has_smallest, NUMBER(gpc_text_add_bytes, smallest_device_bytes) },
	{ "driver calls", NULL, NUMBER(add_count, n_driver_calls) },
#define CALLS(kind) NUMBER(add_count, n_calls[GPC_SIM_COST_##kind])
	{ "  memory taken", NULL, CALLS(MALLOC) },
	{ "  memory returned", NULL, CALLS(FREE) },
	{ "  free queried", NULL, CALLS(INFO) },
	{ "  events created", has_work, CALLS(EVENT_CREATE) },
	{ "  events recorded", has_work, CALLS(RECORD) },
	{ "  events queried", has_work, CALLS(QUERY) },
	{ "  stream waits", has_work, CALLS(WAIT) },
	{ "  host waits", has_work, CALLS(SYNC) },
#undef CALLS
	{ "published cost", NULL, NUMBER(add_ms, driver_ns) },
	{ "hit rate", NULL, cell_hits, NULL, 0 },
	{ "time per operation", NULL, cell_time, NULL, 0 },
	{ "peak pending", has_work, NUMBER(gpc_text_add_bytes, peak_pending_bytes) },
	{ "waits", has_work, NUMBER(add_count, n_waits) },
	{ "waited", has_work, NUMBER(add_ms, waited_ns) },
	{ "program time", has_work, NUMBER(add_ms, program_ns) },
	{ "races", has_work, NUMBER(add_count, n_races) },
	{ "result", NULL, cell_result, NULL, 0 },
#undef NUMBER
};

static void add_cell(const struct row *row, const struct gpc_run *run, struct gpc_text *text)
{
	if (row->cell)
		row->cell(run, text);
	else
		row->add(text, *(const uint64_t *)(const void *)((const char *)run + row->at));
}

static void print_bytes(uint64_t bytes, const char *rest)
{
	GPC_TEXT(text, 40);

	gpc_text_add_bytes(&text, bytes);
	printf("%s%s", text.buf, rest);
}

/* Prints the line "N WHAT"; nothing if `n` is 0. */
static void note(uint64_t n, const char *what)
{
	if (n)
		printf("  %" PRIu64 " %s\n", n, what);
}

static void print_recorded(const struct gpc_trace *trace)
{
	const struct gpc_trace_recorded *recorded = &trace->recorded;

	if (recorded->first_event)
		printf("  events %" PRIu64 "..%" PRIu64 " of %" PRIu64 " of the recording",
			recorded->first_event, recorded->last_event, recorded->n_events);
	else
		printf("  no events in the recording");
	printf(", GPU %d; %" PRIu64 " blocks of ", recorded->device, recorded->n_held_before);
	print_bytes(recorded->held_before_bytes, " held before\n");
	note(recorded->n_missing, "events are missing in between");
	note(recorded->n_torn, "blocks are torn, and left out");
	note(recorded->n_other_devices, "events of other GPUs were left out; see --device");
	if (trace->fixed_bytes) {
		printf("  ");
		print_bytes(trace->fixed_bytes, " of other kinds of memory are held throughout\n");
	}
}

void gpc_print_notes(const struct gpc_trace *trace)
{
	printf("%s: %" PRIu64 " operations on %u stream%s\n", trace->path, trace->n_ops,
		trace->n_streams, trace->n_streams == 1 ? "" : "s");
	note(trace->n_work, "of them are work of the device");
	if (trace->is_recording)
		print_recorded(trace);
	note(trace->n_unknown_frees, "frees of what the trace does not allocate were left out");
	note(trace->n_implied_frees,
		"addresses were given out again without a free; it is implied");
	note(trace->n_failures, "requests had failed when the trace was taken");
}

void gpc_print_table(const struct gpc_trace *trace, const struct gpc_run *runs, unsigned n_runs)
{
	gpc_print_notes(trace);
	printf("%-*s", LABEL_WIDTH, "");
	for (unsigned i = 0; i < n_runs; i++)
		printf("%*s", COLUMN_WIDTH, runs[i].policy->name);
	putchar('\n');
	for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
		if (rows[row].is_known && !rows[row].is_known(&runs[0]))
			continue;
		printf("%-*s", LABEL_WIDTH, rows[row].label);
		for (unsigned i = 0; i < n_runs; i++) {
			GPC_TEXT(text, 40);

			add_cell(&rows[row], &runs[i], &text);
			printf("%*s", COLUMN_WIDTH, text.buf);
		}
		putchar('\n');
	}
}

static void add_whole(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static void add_part(struct json_object *object, const char *key, double value)
{
	char buf[32];

	(void)snprintf(buf, sizeof buf, "%.6f", value);
	json_object_object_add(object, key, json_object_new_double_s(value, buf));
}

static const char *why_of(const struct gpc_run *run)
{
	if (run->broken)
		return run->broken;
	return run->has_failed ? gpc_status_text(run->failure)
			       : "memory was reused while work could still use it";
}

static struct json_object *json_of_failure(const struct gpc_run *run)
{
	struct json_object *failure;

	if (gpc_run_is_good(run))
		return NULL;
	failure = json_object_new_object();
	add_whole(failure, "event", run->failed_event);
	add_whole(failure, "line", run->failed_line);
	add_whole(failure, "size_bytes", run->failed_size);
	json_object_object_add(failure, "why", json_object_new_string(why_of(run)));
	return failure;
}

static struct json_object *json_of_work(const struct gpc_run *run)
{
	struct json_object *work;

	if (!run->has_work)
		return NULL;
	work = json_object_new_object();
	add_whole(work, "peak_pending_bytes", run->peak_pending_bytes);
	add_whole(work, "n_waits", run->n_waits);
	add_whole(work, "waited_ns", run->waited_ns);
	add_whole(work, "program_ns", run->program_ns);
	add_whole(work, "n_races", run->n_races);
	return work;
}

static struct json_object *json_of_calls(const struct gpc_run *run)
{
	struct json_object *calls = json_object_new_object();

	add_whole(calls, "mem_alloc", run->n_calls[GPC_SIM_COST_MALLOC]);
	add_whole(calls, "mem_free", run->n_calls[GPC_SIM_COST_FREE]);
	add_whole(calls, "mem_get_info", run->n_calls[GPC_SIM_COST_INFO]);
	add_whole(calls, "event_create_destroy", run->n_calls[GPC_SIM_COST_EVENT_CREATE]);
	add_whole(calls, "event_record", run->n_calls[GPC_SIM_COST_RECORD]);
	add_whole(calls, "event_query", run->n_calls[GPC_SIM_COST_QUERY]);
	add_whole(calls, "stream_wait", run->n_calls[GPC_SIM_COST_WAIT]);
	add_whole(calls, "synchronize", run->n_calls[GPC_SIM_COST_SYNC]);
	return calls;
}

struct json_object *gpc_print_json_run(const struct gpc_run *run)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "policy", json_object_new_string(run->policy->name));
	add_whole(object, "device_bytes", run->device_bytes);
	add_whole(object, "peak_live_bytes", run->peak_live_bytes);
	add_whole(object, "peak_reserved_bytes", run->peak_reserved_bytes);
	add_whole(object, "reserved_at_end_bytes", run->reserved_at_end_bytes);
	add_part(object, "fragmentation", fragmentation(run));
	add_whole(object, "n_driver_calls", run->n_driver_calls);
	add_whole(object, "n_driver_allocs", run->n_calls[GPC_SIM_COST_MALLOC]);
	add_whole(object, "n_driver_frees", run->n_calls[GPC_SIM_COST_FREE]);
	json_object_object_add(object, "driver_calls", json_of_calls(run));
	add_whole(object, "driver_ns", run->driver_ns);
	add_part(object, "hit_rate", hit_rate(run));
	add_whole(object, "n_failures_served", run->n_failures_served);
	if (run->policy->is_model)
		json_object_object_add(object, "ns_per_operation", NULL);
	else
		add_part(object, "ns_per_operation", ns_per_operation(run));
	if (run->smallest_device_bytes)
		add_whole(object, "smallest_device_bytes", run->smallest_device_bytes);
	else
		json_object_object_add(object, "smallest_device_bytes", NULL);
	json_object_object_add(object, "work", json_of_work(run));
	json_object_object_add(object, "failure", json_of_failure(run));
	return object;
}

struct json_object *gpc_print_json_begin(void)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "schema", json_object_new_string("gpumem.replay/1"));
	json_object_object_add(root, "tool_version", json_object_new_string(GPUCACHE_VERSION));
	json_object_object_add(root, "traces", json_object_new_array());
	return root;
}

static struct json_object *json_of_recorded(const struct gpc_trace *trace)
{
	const struct gpc_trace_recorded *recorded = &trace->recorded;
	struct json_object *object;

	if (!trace->is_recording)
		return NULL;
	object = json_object_new_object();
	add_whole(object, "device", (uint64_t)recorded->device);
	add_whole(object, "first_event", recorded->first_event);
	add_whole(object, "last_event", recorded->last_event);
	add_whole(object, "n_events", recorded->n_events);
	add_whole(object, "n_missing_events", recorded->n_missing);
	add_whole(object, "n_held_before", recorded->n_held_before);
	add_whole(object, "held_before_bytes", recorded->held_before_bytes);
	add_whole(object, "n_torn", recorded->n_torn);
	add_whole(object, "n_other_device_events", recorded->n_other_devices);
	return object;
}

struct json_object *gpc_print_json_add(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs)
{
	struct json_object *object = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct json_object *traces = NULL;

	json_object_object_add(object, "path", json_object_new_string(trace->path));
	add_whole(object, "n_operations", trace->n_ops);
	add_whole(object, "n_streams", trace->n_streams);
	add_whole(object, "n_failures", trace->n_failures);
	add_whole(object, "n_unknown_frees", trace->n_unknown_frees);
	add_whole(object, "n_implied_frees", trace->n_implied_frees);
	add_whole(object, "n_work", trace->n_work);
	add_whole(object, "fixed_bytes", trace->fixed_bytes);
	add_whole(object, "peak_live_bytes", trace->peak_live_bytes);
	json_object_object_add(object, "recording", json_of_recorded(trace));
	for (unsigned i = 0; i < n_runs; i++)
		json_object_array_add(list, gpc_print_json_run(&runs[i]));
	json_object_object_add(object, "runs", list);
	(void)json_object_object_get_ex(root, "traces", &traces);
	json_object_array_add(traces, object);
	return list;
}

void gpc_print_json_end(struct json_object *root)
{
	puts(json_object_to_json_string_ext(
		root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	(void)json_object_put(root);
}
