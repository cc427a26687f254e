/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment that is spoken of, of one GPU: the end (or now), its peak, or its last failed request.
 *
 *      --at=MOMENT   that one, where the recording has it
 *      --thread ...  the end: it is of the live blocks (filter.h)
 *      nothing       the failure that the program did not recover from, where there is one; else the end
 *
 * Threads     One.
 * Failure     None.
 * Limits      A peak and a failure list their biggest holders only, by stack.
 */
#ifndef GPC_REPORT_MOMENT_H
#define GPC_REPORT_MOMENT_H

#include "tools/gpumem-report/report.h"

struct gpc_moment {
	enum gpc_at at; /* never GPC_AT_USUAL */
	int32_t device;
	bool is_there; /* there was a peak, or a failure; an end always is */
	struct gpucache_oom oom;
	struct gpucache_peak peak;
};

void gpc_moment_find(struct gpc_moment *moment, const struct gpc_report *report, int32_t ordinal);

/* The failure, or NULL if this is another moment. */
const struct gpucache_oom *gpc_moment_oom(const struct gpc_moment *moment);

/* "when it ended", "now", "when memory ran out", "at its peak" */
const char *gpc_moment_words(const struct gpc_moment *moment, const struct gpc_report *report);

/* "end", "peak" or "oom", for JSON: an end by what it was, as "killed". */
const char *gpc_moment_key(const struct gpc_moment *moment, const struct gpc_report *report);

/*
 * The next GPU, from *i on, that starts at 0: wanted, and used or said something of by --at; false: there
 * is no more.
 */
bool gpc_moment_next(const struct gpc_report *report, uint64_t *i,
	struct gpucache_device *ret_device, struct gpc_moment *ret_moment);

/* Shows one GPU at a moment: as text, or into `devices`.  False: without memory. */
typedef bool (*gpc_moment_show)(struct gpc_report *report, struct json_object *devices,
	const struct gpucache_device *device, const struct gpc_moment *moment);

/* A whole view of every GPU at its moment.  `what`: what there was no memory for. */
enum gpc_exit gpc_moment_view(
	struct gpc_report *report, const char *name, const char *what, gpc_moment_show show);

#endif
