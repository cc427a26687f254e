/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what all views have in common, by json-c: the identity of a recording, devices, balance sheets, stacks.
 */
#include "tools/gpumem-report/output/json.h"

#include <string.h>

#include "gpucache_version.h"

/*
 * The most bytes that frames may take in one document, and what one frame takes without its names.  From the stack that
 * exceeds the limit on, stacks have only their call sites.
 */
#define MOST_BYTES  ((size_t)128 << 20)
#define FRAME_BYTES 2048

struct json_object *gpc_json_add(
	struct json_object *object, const char *key, struct json_object *child)
{
	json_object_object_add(object, key, child);
	return child;
}

struct json_object *gpc_json_row(struct json_object *array)
{
	struct json_object *row = json_object_new_object();

	json_object_array_add(array, row);
	return row;
}

void gpc_json_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, text && *text ? json_object_new_string(text) : NULL);
}

void gpc_json_bytes(struct json_object *object, const char *key, uint64_t bytes)
{
	json_object_object_add(
		object, key, bytes == GPUCACHE_UNKNOWN ? NULL : json_object_new_uint64(bytes));
}

void gpc_json_bool(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

void gpc_json_time(struct json_object *object, const char *key, const struct gpc_report *report,
	uint64_t monotonic_ns)
{
	gpc_json_text(object, key,
		monotonic_ns
			? gpc_show_rfc3339(gpc_report_realtime(report->recording, monotonic_ns))
			: NULL);
}

struct json_object *gpc_json_identity(const char *path, const struct gpucache_header *header,
	enum gpc_run_state state, uint64_t size)
{
	struct json_object *object = json_object_new_object();

	gpc_json_text(object, "path", path);
	gpc_json_text(object, "state", gpc_state_word(state));
	gpc_json_bool(object, "oom_seen", header->state & GPUCACHE_STATE_OOM_SEEN);
	gpc_json_bytes(object, "pid", header->pid);
	gpc_json_text(object, "exe", header->exe);
	gpc_json_text(object, "command", header->command);
	gpc_json_text(object, "host", header->host);
	gpc_json_text(object, "job", header->job);
	gpc_json_bytes(
		object, "rank", header->rank < 0 ? GPUCACHE_UNKNOWN : (uint64_t)header->rank);
	gpc_json_text(object, "started", gpc_show_rfc3339(header->start_realtime_ns));
	gpc_json_text(object, "library_version", header->version);
	gpc_json_bytes(object, "driver_version",
		header->driver_version ? header->driver_version : GPUCACHE_UNKNOWN);
	gpc_json_bytes(object, "file_bytes", size);
	return object;
}

static struct json_object *problems_of(const struct gpc_recording *rec)
{
	struct json_object *array = json_object_new_array();

	for (unsigned i = 0; i < rec->n_problems && i < GPC_RECORDING_MAX_PROBLEMS; i++) {
		struct json_object *object = gpc_json_row(array);

		gpc_json_text(object, "region", gpc_region_name(rec->problems[i].kind));
		gpc_json_text(object, "problem", rec->problems[i].text);
	}
	return array;
}

struct json_object *gpc_json_begin(const struct gpc_report *report, const char *view)
{
	const struct gpc_recording *rec = report->recording;
	struct json_object *root = json_object_new_object();

	gpc_json_text(root, "schema", GPC_REPORT_SCHEMA);
	gpc_json_text(root, "tool_version", GPUCACHE_VERSION);
	gpc_json_text(root, "view", view);
	if (rec) {
		struct json_object *identity = gpc_json_identity(
			rec->path, &rec->header, rec->run_state, rec->header.file_size);

		gpc_json_time(identity, "last_seen", report, gpc_recording_last_ns(rec));
		gpc_json_bytes(identity, "dropped_blocks", rec->header.dropped_blocks);
		gpc_json_bytes(identity, "dropped_stacks", rec->header.dropped_stacks);
		gpc_json_bytes(identity, "dropped_python", rec->header.dropped_python);
		gpc_json_bytes(identity, "dropped_segments", rec->header.dropped_segments);
		gpc_json_bytes(identity, "dropped_tags", rec->header.dropped_tags);
		gpc_json_bytes(identity, "sampled_below_bytes", rec->header.sample_bytes);
		json_object_object_add(identity, "problems", problems_of(rec));
		json_object_object_add(root, "recording", identity);
	}
	return root;
}

void gpc_json_end(const struct gpc_report *report, struct json_object *root)
{
	int flags =
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;

	fputs(json_object_to_json_string_ext(root, flags), report->paper.out);
	fputc('\n', report->paper.out);
	json_object_put(root);
}

static struct json_object *kinds_of(const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	struct json_object *array = json_object_new_array();
	unsigned int kind = GPUCACHE_KIND_NONE;

	while ((kind = gpc_balance_next_kind(kind_bytes, kind)) != GPUCACHE_KIND_NONE) {
		struct json_object *object = gpc_json_row(array);

		gpc_json_text(object, "kind", gpc_kind_words(kind));
		gpc_json_bytes(object, "bytes", kind_bytes[kind]);
	}
	return array;
}

struct json_object *gpc_json_balance(
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	struct json_object *object = json_object_new_object();

	gpc_json_bytes(object, "requested_bytes", balance->requested);
	gpc_json_bytes(object, "rounding_bytes", balance->rounding);
	gpc_json_bytes(object, "pending_bytes", balance->pending);
	gpc_json_bytes(object, "cached_bytes", balance->cached);
	gpc_json_bytes(object, "cached_largest_bytes", balance->cached_largest);
	gpc_json_bytes(object, "direct_bytes", balance->direct);
	json_object_object_add(object, "direct_kinds", kinds_of(kind_bytes));
	gpc_json_bytes(object, "process_outside_bytes", balance->process_outside);
	gpc_json_bytes(object, "other_processes_bytes", balance->other_processes);
	gpc_json_bytes(object, "driver_reserve_bytes", balance->driver_reserve);
	gpc_json_bytes(object, "unattributed_bytes", balance->unattributed);
	gpc_json_bytes(object, "free_bytes", balance->device_free);
	gpc_json_bytes(object, "total_bytes", balance->device_total);
	json_object_object_add(
		object, "difference_bytes", json_object_new_int64(gpc_balance_difference(balance)));
	return object;
}

void gpc_json_point(struct json_object *object, const struct gpc_history_view *history, size_t i)
{
	const struct gpucache_point *point = &history->points[i];

	gpc_json_bytes(object, "requested_bytes", point->requested_bytes);
	gpc_json_bytes(object, "live_bytes", point->live_bytes);
	gpc_json_bytes(object, "pending_bytes", history->pending_bytes[i]);
	gpc_json_bytes(object, "reserved_bytes", point->reserved_bytes);
}

struct json_object *gpc_json_device(const struct gpucache_device *device)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "ordinal", json_object_new_int(device->ordinal));
	gpc_json_text(object, "name", device->name);
	gpc_json_text(object, "uuid", device->uuid);
	gpc_json_bytes(object, "physical_index",
		device->physical ? device->physical - 1 : GPUCACHE_UNKNOWN);
	gpc_json_text(object, "pci_bus_id", device->pci_bus_id);
	return object;
}

/* Estimates the memory that a frame takes.  json-c stores its names twice: in the object, and in the printed text. */
static size_t bytes_of(const struct gpc_frame *frame)
{
	return FRAME_BYTES + 2 * (frame->function ? strlen(frame->function) : 0) +
	       2 * (frame->file ? strlen(frame->file) : 0);
}

struct json_object *gpc_json_stack(const struct gpc_report *report, uint32_t id)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);
	static size_t n_bytes;
	struct json_object *array;

	if (!stack)
		return NULL;
	array = json_object_new_array();
	for (size_t i = 0; i < stack->n; i++)
		n_bytes += bytes_of(&stack->frames[i]);
	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];
		struct json_object *object;

		if (n_bytes > MOST_BYTES && (int)i != stack->site)
			continue;
		object = gpc_json_row(array);
		gpc_json_text(object, "language", frame->is_python ? "python" : "native");
		gpc_json_text(object, "function", frame->function);
		gpc_json_text(object, "file", frame->file);
		gpc_json_bytes(object, "line", frame->line ? frame->line : GPUCACHE_UNKNOWN);
		gpc_json_text(object, "module", frame->module);
		gpc_json_bytes(object, "module_offset",
			frame->is_python ? GPUCACHE_UNKNOWN : frame->offset);
		gpc_json_bool(object, "is_inlined", frame->is_inlined);
		gpc_json_bool(object, "is_call_site", (int)i == stack->site);
	}
	return array;
}
