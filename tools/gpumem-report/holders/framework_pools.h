/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frameworks that take a large part of a GPU and suballocate it: XLA (JAX) and TensorFlow.
 *
 * The library sees the pool, but not which of its bytes are in use.  When the pool is full, the framework refuses a
 * request itself, even if the GPU has room: no driver call fails, so the recording has no verdict.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Recognizes a pool by the library that requested it (by_library.h), by sizes, and by the framework's
 *             environment variables in the recording.
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

/* A framework's own pool among some holders. */
struct gpc_framework_pool {
	const struct gpc_framework_row *framework; /* NULL: there is none */
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_framework_pool gpc_framework_find_pool(const struct gpc_recording *recording,
	const struct gpucache_holder *holders, uint32_t n, uint64_t device_total);

/* True if the framework took its pool at once, and not as it needed more. */
bool gpc_framework_took_at_once(
	const struct gpc_recording *recording, const struct gpc_framework_pool *pool);

/* Appends advice: which variables shrink and disable the framework's pool. */
void gpc_framework_add_less(const struct gpc_framework_row *framework, struct gpc_text *text);

/* Appends the size of the pool that a framework has on the device, and how to change it; false if there is none. */
bool gpc_framework_add_pool(const struct gpc_report *report, const struct gpucache_device *device,
	struct gpc_text *text);

/* Adds the section POOL, which is empty if the device has none. */
void gpc_framework_show(const struct gpc_report *report, const struct gpucache_device *device);

#endif
