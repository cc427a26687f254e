/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frameworks that take a large part of a GPU and hand it out themselves: XLA (JAX) and TensorFlow.
 *
 * Nobody outside sees what of such a pool is in use; and when it is full, the framework refuses the request itself,
 * whatever the GPU has left: no request of the driver's fails, so there is no verdict.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Goes by whose code asked (libraries.h), by the sizes and by the framework's own variables in the recording.
 */
#ifndef GPC_REPORT_FRAMEWORKS_H
#define GPC_REPORT_FRAMEWORKS_H

#include "tools/gpumem-report/report.h"

struct gpc_framework_row;

/* What a framework's pool has of a device. */
struct gpc_framework_pool {
	const struct gpc_framework_row *framework; /* NULL: there is none */
	uint64_t bytes;
	uint64_t n_blocks;
};

/* The one whose name a library has (gpc_library_name); NULL: none.  "XLA". */
const struct gpc_framework_row *gpc_framework_of(const char *library);
const char *gpc_framework_name(const struct gpc_framework_row *framework);

/* The pool at the peak of the device, or NULL as framework. */
struct gpc_framework_pool gpc_framework_find_pool(
	const struct gpc_report *report, const struct gpucache_device *device);

/* How to have it take less, and how to have it keep no pool. */
void gpc_framework_add_less(const struct gpc_framework_row *framework, struct gpc_text *text);

/* Appends what is to be said of it; false if there is none. */
bool gpc_framework_add_pool(const struct gpc_report *report, const struct gpucache_device *device,
	struct gpc_text *text);

/* The section POOL of a device, where there is one. */
void gpc_framework_print(const struct gpc_report *report, const struct gpucache_device *device);

/* The same as an object "framework_pool" of the device, or null. */
void gpc_framework_json(struct json_object *object, const struct gpc_report *report,
	const struct gpucache_device *device);

#endif
