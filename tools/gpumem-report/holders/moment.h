/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment that a view shows of one GPU: the end (or now), its peak, or its last failed request.
 *
 *      with --at=MOMENT       that moment; is_there is false if the recording does not have it
 *      with --thread and such the end: filters of blocks need live blocks (filter.h)
 *      with none of these     the newest failure that the program did not recover from, else the end
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
	bool is_there; /* the recording has this moment; always true for the end */
	struct gpucache_oom oom;
	struct gpucache_peak peak;
};

void gpc_moment_find(struct gpc_moment *moment, const struct gpc_report *report, int32_t ordinal);

/* Returns &moment->oom if the moment is a failure, and the recording has one; else NULL. */
const struct gpucache_oom *gpc_moment_oom(const struct gpc_moment *moment);

/* The moment in a sentence: "when it ended", "now", "when memory ran out", "at its peak". */
const char *gpc_moment_words(const struct gpc_moment *moment, const struct gpc_report *report);

/* The moment in JSON: "peak", "oom", or for the end the state of the process, such as "killed". */
const char *gpc_moment_key(const struct gpc_moment *moment, const struct gpc_report *report);

/* True if the process had a context on the moment's GPU, or the moment is a failure there. */
bool gpc_moment_is_used(const struct gpc_report *report, const struct gpc_moment *moment);

/*
 * Iterates over the GPUs of -d on which the process had a context or a failure that is the moment to show; *i starts
 * at 0.  Returns false at the end.
 */
bool gpc_moment_next(const struct gpc_report *report, uint64_t *i,
	struct gpucache_device *ret_device, struct gpc_moment *ret_moment);

/* Tells report->doc about one GPU at a moment, within the GPU's element of `devices`. */
typedef void (*gpc_moment_tell)(const struct gpc_report *report,
	const struct gpucache_device *device, const struct gpc_moment *moment);

/* Makes a view's document: calls `tell` for each GPU of gpc_moment_next. */
enum gpc_exit gpc_moment_view(struct gpc_report *report, const char *view, gpc_moment_tell tell);

#endif
