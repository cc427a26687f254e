/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine form: schema gpumem.report/1.
 *
 * Fields are added, never removed or changed.  Sizes are integers in bytes with names that end in
 * `_bytes`; times are RFC 3339 in UTC; what is not known is null.
 *
 * Threads     One.
 * Failure     json-c answers NULL without memory, and then prints null.
 * Limits      None.
 */
#ifndef GPC_REPORT_JSON_H
#define GPC_REPORT_JSON_H

#include "tools/gpumem-report/report.h"

/* An object with schema and tool_version, and `recording` where there is one. */
struct json_object *gpc_json_begin(const struct gpc_report *report, const char *view);

/* Prints it and gives it back. */
void gpc_json_end(const struct gpc_report *report, struct json_object *root);

void gpc_json_text(struct json_object *object, const char *key, const char *text);
void gpc_json_bytes(
	struct json_object *object, const char *key, uint64_t bytes); /* unknown: null */
void gpc_json_bool(struct json_object *object, const char *key, bool value);
void gpc_json_time(struct json_object *object, const char *key, const struct gpc_report *report,
	uint64_t monotonic_ns);

/* `kind_bytes`: what the line `direct` consists of. */
struct json_object *gpc_json_balance(
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS]);
struct json_object *gpc_json_device(const struct gpucache_device *device);

/* Who, when and in what state: an element of `list`, and `recording` everywhere else. */
struct json_object *gpc_json_identity(const char *path, const struct gpucache_header *header,
	enum gpc_run_state state, uint64_t size);

/* The frames of a stack, innermost first; null for 0 or where it was not recorded. */
struct json_object *gpc_json_stack(const struct gpc_report *report, uint32_t id);

#endif
