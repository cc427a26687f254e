/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment that a view shows of one GPU: the end (or now), its peak, or its last failed request.
 *
 *      --at=MOMENT   MOMENT, if the recording has it
 *      --thread ...  the end: filters need live blocks (filter.h)
 *      nothing       the failure that the program did not recover from, if any; else the end
 *
 * Threads     One.
 * Failure     None.
 * Limits      A peak and a failure list only their biggest holders, by stack.
 */
#ifndef GPC_REPORT_MOMENT_H
#define GPC_REPORT_MOMENT_H

#include "tools/gpumem-report/report.h"

struct gpc_moment {
	enum gpc_at at; /* never GPC_AT_USUAL */
	int32_t device;
	bool is_there; /* the recording has it; always true for the end */
	struct gpucache_oom oom;
	struct gpucache_peak peak;
};

void gpc_moment_find(struct gpc_moment *moment, const struct gpc_report *report, int32_t ordinal);

/* Returns the failure if that is the moment, else NULL. */
const struct gpucache_oom *gpc_moment_oom(const struct gpc_moment *moment);

/* "when it ended", "now", "when memory ran out", "at its peak" */
const char *gpc_moment_words(const struct gpc_moment *moment, const struct gpc_report *report);

/* For JSON: "peak", "oom", or for the end its kind, such as "killed". */
const char *gpc_moment_key(const struct gpc_moment *moment, const struct gpc_report *report);

/*
 * Iterates over the GPUs selected by -d that were used or that --at applies to; *i starts at 0.  Returns
 * false at the end.
 */
bool gpc_moment_next(const struct gpc_report *report, uint64_t *i,
	struct gpucache_device *ret_device, struct gpc_moment *ret_moment);

/* Shows one GPU at a moment: in `object`, the GPU's element of the JSON, or as text if `object` is NULL. */
typedef void (*gpc_moment_show)(struct gpc_report *report, struct json_object *object,
	const struct gpucache_device *device, const struct gpc_moment *moment);

/* Shows every GPU at its moment. */
enum gpc_exit gpc_moment_view(struct gpc_report *report, const char *name, gpc_moment_show show);

#endif
