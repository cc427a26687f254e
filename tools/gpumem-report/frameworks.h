/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frameworks that take a large part of a GPU and suballocate it: XLA (JAX) and TensorFlow.
 *
 * How much of such a pool is in use is invisible from outside.  When the pool is full, the framework itself refuses the
 * request, whatever the GPU has left: no driver call fails, so there is no verdict.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Goes by the requesting library (libraries.h), sizes, and the framework's variables in the recording.
 */
#ifndef GPC_REPORT_FRAMEWORKS_H
#define GPC_REPORT_FRAMEWORKS_H

#include "tools/gpumem-report/report.h"

struct gpc_framework_row {
	const char *name; /* as in libraries.def */
	const char *words;
	const char *full;         /* its message when the pool is full */
	const char *grows;        /* the variable that makes the pool grow on demand */
	const char *more;         /* how to enlarge the pool */
	const char *no_pool;      /* the variable that disables the pool */
	const char *drivers_pool; /* the variable that selects the driver's pool */
	const char *pieces;
};

/* Returns the framework of a library (gpc_library_name), or NULL. */
const struct gpc_framework_row *gpc_framework_of(const char *library);

/* Appends how to shrink the framework's pool, and how to disable it. */
void gpc_framework_add_less(const struct gpc_framework_row *framework, struct gpc_text *text);

/* Appends a description of the pool; returns false if there is none. */
bool gpc_framework_add_pool(const struct gpc_report *report, const struct gpucache_device *device,
	struct gpc_text *text);

/* Prints the section POOL, if the device has one. */
void gpc_framework_print(const struct gpc_report *report, const struct gpucache_device *device);

/* The same as an object "framework_pool" of the device, or null. */
void gpc_framework_json(struct json_object *object, const struct gpc_report *report,
	const struct gpucache_device *device);

#endif
