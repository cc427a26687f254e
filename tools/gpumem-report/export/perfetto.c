/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace events, for ui.perfetto.dev and chrome://tracing: counters of each GPU over the whole run, exact as far
 * back as the ring of events goes, and before that samples; failed requests as instants, and the program's ranges as
 * slices of its threads.
 *
 * Times are microseconds of CLOCK_MONOTONIC.  A slice spans the first to the last event of a thread in
 * one range, as far back as the ring of events goes.
 */
#include <json-c/json.h>
#include <stdlib.h>

#include "format/memory.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/holders/over_time.h"

/* The time that a thread spends in one range (tag). */
struct slice {
	uint32_t thread;
	uint32_t tag;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct trace {
	const struct gpc_report *report;
	bool has_event;
	struct slice *slices; /* the current one of each thread */
	size_t n_slices;
};

static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, json_object_new_string(text));
}

static void add_number(struct json_object *object, const char *key, uint64_t number)
{
	json_object_object_add(object, key, json_object_new_uint64(number));
}

static struct json_object *add_args(struct json_object *event)
{
	struct json_object *args = json_object_new_object();

	json_object_object_add(event, "args", args);
	return args;
}

/* Begins an event, which end_event prints. */
static struct json_object *begin_event(
	const struct trace *trace, const char *phase, const char *name, uint64_t time_ns)
{
	struct json_object *event = json_object_new_object();
	char ts[32];

	add_text(event, "ph", phase);
	add_text(event, "name", name);
	add_number(event, "pid", trace->report->recording->header.pid);
	snprintf(ts, sizeof ts, "%llu.%03u", (unsigned long long)(time_ns / 1000),
		(unsigned)(time_ns % 1000));
	if (time_ns)
		json_object_object_add(
			event, "ts", json_object_new_double_s((double)time_ns / 1000, ts));
	return event;
}

static void end_event(struct trace *trace, struct json_object *event)
{
	fprintf(trace->report->out, "%s%s", trace->has_event ? ",\n" : "",
		json_object_to_json_string_ext(event, JSON_C_TO_STRING_NOSLASHESCAPE));
	trace->has_event = true;
	json_object_put(event);
}

static void print_process(struct trace *trace)
{
	const struct gpucache_header *header = &trace->report->recording->header;
	struct json_object *event = begin_event(trace, "M", "process_name", 0);
	struct json_object *args = add_args(event);
	char buf[300];

	if (header->rank >= 0)
		snprintf(buf, sizeof buf, "rank %d (%s)", header->rank, gpc_base_name(header->exe));
	else
		snprintf(buf, sizeof buf, "%s", gpc_base_name(header->exe));
	add_text(args, "name", buf);
	end_event(trace, event);
}

/* Adds the device's free bytes: free and ours of the last reading, less ours now (format/sheet.h). */
static void add_free(
	struct json_object *args, const struct gpucache_device *device, uint64_t reserved)
{
	if (device->look_ns)
		add_number(args, "free",
			gpc_bytes_less(
				gpc_bytes_add(device->free_bytes, device->ours_bytes), reserved));
}

static struct json_object *begin_counters(
	const struct trace *trace, const struct gpucache_device *device, uint64_t time_ns)
{
	char name[32];

	snprintf(name, sizeof name, "GPU %d memory", device->ordinal);
	return begin_event(trace, "C", name, time_ns);
}

static void print_level(struct trace *trace, const struct gpucache_device *device,
	const struct gpc_over_time_level *level, uint64_t pending)
{
	struct json_object *event = begin_counters(trace, device, level->time_ns);
	struct json_object *args = add_args(event);
	uint64_t idle = gpc_bytes_less(level->reserved_bytes, level->live_bytes);

	add_number(args, "live", level->live_bytes);
	add_number(args, "pending", gpc_smaller(pending, gpc_bytes_less(idle, level->idle_bytes)));
	add_number(args, "reserved", level->reserved_bytes);
	add_free(args, device, level->reserved_bytes);
	end_event(trace, event);
}

static void print_point(struct trace *trace, const struct gpucache_device *device,
	const struct gpc_history_view *history, size_t i)
{
	const struct gpucache_point *point = &history->points[i];
	struct json_object *event = begin_counters(trace, device, point->time_ns);
	struct json_object *args = add_args(event);

	add_number(args, "live", point->live_bytes);
	add_number(args, "pending", history->pending_bytes[i]);
	add_number(args, "reserved", point->reserved_bytes);
	add_free(args, device, point->reserved_bytes);
	end_event(trace, event);
}

/* The samples of HISTORY, and from the first event on the exact levels, with the pending bytes of the sample before. */
static void print_counters(struct trace *trace, const struct gpucache_device *device,
	const struct gpc_history_view *history, const struct gpc_over_time *moments)
{
	const size_t n = moments->is_exact ? moments->n : 0;
	uint64_t pending = 0;
	size_t at = 0;

	for (size_t row = 0; row <= n; row++) {
		const struct gpc_over_time_row *next = row < n ? &moments->rows[row] : NULL;

		for (; at < history->n_points &&
			(!next || history->points[at].time_ns < next->most.time_ns);
			at++) {
			pending = history->pending_bytes[at];
			if (row == 0)
				print_point(trace, device, history, at);
		}
		if (!next)
			continue;
		print_level(trace, device, &next->most, pending);
		if (next->last.time_ns != next->most.time_ns)
			print_level(trace, device, &next->last, pending);
	}
}

static void print_failures(struct trace *trace, const struct gpucache_device *device,
	const struct gpc_over_time *moments)
{
	const struct gpc_recording *rec = trace->report->recording;
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		struct json_object *event;
		char name[96];

		if (!gpc_recording_read_oom(rec, i, &oom) || oom.device != device->ordinal)
			continue;
		snprintf(name, sizeof name, "OOM on GPU %d: %s requested%s", oom.device,
			gpc_show_bytes(oom.requested), oom.recovered ? ", recovered" : "");
		event = begin_event(trace, "i", name, gpc_over_time_time_of(moments, &oom));
		add_text(event, "s", "p");
		add_number(event, "tid", oom.thread);
		end_event(trace, event);
	}
}

static void end_slice(struct trace *trace, const struct slice *slice)
{
	GPC_TEXT(text, GPC_LABEL_SIZE);
	struct json_object *event;

	if (!slice->tag)
		return;
	gpc_recording_add_tag(trace->report->recording, slice->tag, &text);
	event = begin_event(trace, "X", text.buf, slice->first_ns);
	add_number(event, "tid", slice->thread);
	json_object_object_add(event, "dur",
		json_object_new_double((double)(slice->last_ns - slice->first_ns) / 1000));
	end_event(trace, event);
}

static struct slice *slice_of(struct trace *trace, uint32_t thread)
{
	for (size_t i = 0; i < trace->n_slices; i++)
		if (trace->slices[i].thread == thread)
			return &trace->slices[i];
	trace->slices = gpc_resize(trace->slices, trace->n_slices + 1, sizeof *trace->slices);
	trace->slices[trace->n_slices] = (struct slice){ .thread = thread };
	return &trace->slices[trace->n_slices++];
}

static void print_slices(struct trace *trace)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(trace->report->recording, &cursor, &event)) {
		struct slice *slice = slice_of(trace, event.thread);

		if (slice->tag != event.tag) {
			end_slice(trace, slice);
			slice->tag = event.tag;
			slice->first_ns = slice->last_ns = event.time_ns;
		}
		slice->last_ns = gpc_larger(slice->last_ns, event.time_ns);
	}
	for (size_t i = 0; i < trace->n_slices; i++)
		end_slice(trace, &trace->slices[i]);
}

enum gpc_exit gpc_export_perfetto(struct gpc_report *report)
{
	struct trace trace = { .report = report };
	struct gpucache_device device;
	struct gpc_history_view history;

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", report->out);
	print_process(&trace);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		struct gpc_over_time moments;

		gpc_over_time_create(&moments, report, device.ordinal);
		(void)gpc_recording_find_history(report->recording, device.ordinal, &history);
		print_counters(&trace, &device, &history, &moments);
		print_failures(&trace, &device, &moments);
		gpc_over_time_fini(&moments);
	}
	print_slices(&trace);
	free(trace.slices);
	fputs("\n]}\n", report->out);
	return GPC_EXIT_MADE;
}
