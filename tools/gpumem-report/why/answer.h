/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides why a request failed by replaying the recording without each possible cause.
 *
 *      events before the request --> the allocator as it was set     the control: must fail at the request, too
 *                                '-> the driver without a cache      served: the pieces of our cache are the cause
 *                                '-> with one more setting           served: the setting is advised
 *                                '-> more of the device free         served: so many bytes were missing
 *
 * The library judges by the numbers of one moment.  The verdict of this file may differ from the one that the library
 * printed, because the library has neither a replay nor the names of frames (kept_results.h, framework_pools.h).
 *
 * Invariants  1 Fragmentation and rounding are certain only if the control failed, the recording has every
 *               event since the start, and the replay without the cause served the request.
 *             2 A remedy is a setting with which a replay served this request.
 * Threads     One.
 * Failure     None: without a replay, fragmentation and rounding are at most likely.
 * Limits      The replay's GPU hands out memory in steps of 2 MiB, as current drivers do.  Only requests for device
 *             memory are replayed.  Work on the GPU is not recorded, so in a replay it completes at once.
 */
#ifndef GPC_REPORT_ANSWER_H
#define GPC_REPORT_ANSWER_H

#include "tools/gpumem-report/why/kept_results.h"

#define GPC_MAX_REMEDIES 2
#define GPC_REMEDY_PAGES "vmm:" /* the prefix of settings that use pages */

/* One setting with which the request is served. */
struct gpc_remedy {
	char setting[48];    /* "max_split_size_mb:64" */
	bool is_taken_out;   /* the run had this setting, and the request is served without it */
	uint64_t free_bytes; /* on the device, after the request */
};

struct gpc_answer {
	const struct gpc_report *report;
	struct gpucache_oom oom; /* a copy; its `verdict`, `strength` and `also` are judged anew */
	bool is_replayed;        /* the control, see above, failed at this very request */
	bool is_whole;           /* the recording has every event since the start */
	bool is_served_plain;    /* the replay without a cache served it */
	uint64_t plain_free_bytes; /* then free on the device */
	/* With this many fewer bytes in use the request would be served; 0: unknown, or not part of the advice. */
	uint64_t enough_bytes;
	bool may_be_one_pass; /* the growth that the library saw may be activations of one pass (kept_results.h) */
	/* Results kept too long.  Unless its stack is 0, its stack and bytes replace those of the growth in `oom`. */
	struct gpc_kept kept;
	/* The framework that took at least half of the device at once; NULL: none. */
	const struct gpc_framework_row *framework;
	uint64_t framework_bytes;
	uint32_t n_remedies;
	struct gpc_remedy remedies[GPC_MAX_REMEDIES];
};

/* Judges a failure of the recording anew; `oom` is its record. */
void gpc_answer_find(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_answer *ret_answer);

#endif
