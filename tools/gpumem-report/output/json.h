/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON output: schema gpumem.report/1.
 *
 * Later versions may add members, but never remove or change one.  Sizes are integers in bytes with names that end in
 * `_bytes`; times are RFC 3339 in UTC; unknown values are null.
 *
 * Threads     One.
 * Failure     json-c returns NULL if out of memory, and prints that as null.
 */
#ifndef GPC_REPORT_JSON_H
#define GPC_REPORT_JSON_H

#include "tools/gpumem-report/report.h"

/* Creates the object of a view, with `schema`, `tool_version`, `view`, and if a recording is open, `recording`. */
struct json_object *gpc_json_begin(const struct gpc_report *report, const char *view);

/* Adds `child`, a new array or object, and returns it. */
struct json_object *gpc_json_add(
	struct json_object *object, const char *key, struct json_object *child);

/* Appends an empty object to the array, and returns it. */
struct json_object *gpc_json_row(struct json_object *array);

/* Prints the object and releases it. */
void gpc_json_end(const struct gpc_report *report, struct json_object *root);

void gpc_json_text(struct json_object *object, const char *key, const char *text);
/* Unknown: null. */
void gpc_json_bytes(struct json_object *object, const char *key, uint64_t bytes);
void gpc_json_bool(struct json_object *object, const char *key, bool value);
void gpc_json_time(struct json_object *object, const char *key, const struct gpc_report *report,
	uint64_t monotonic_ns);

/* `kind_bytes`: the parts of the line `direct`. */
struct json_object *gpc_json_balance(
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS]);
/* Adds the bytes of point i of a history. */
void gpc_json_point(struct json_object *object, const struct gpc_history_view *history, size_t i);
struct json_object *gpc_json_device(const struct gpucache_device *device);

/* Process, time and state: an element of `recordings` in the view `list`, and the member `recording` of other views. */
struct json_object *gpc_json_identity(const char *path, const struct gpucache_header *header,
	enum gpc_run_state state, uint64_t size);

/* The frames of a stack, innermost first; null if id is 0 or was not recorded. */
struct json_object *gpc_json_stack(const struct gpc_report *report, uint32_t id);

#endif
