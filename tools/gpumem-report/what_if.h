/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counterfactuals: replays the events before a failed request on machines that differ in one thing.
 *
 *      events before the request --> the allocator as it was set     fails at the request, too: a control
 *                                '-> the driver without a cache      serves it?  the cache's pieces are to blame
 *                                '-> with one more setting           serves it?  then it is worth advising
 *                                '-> less of the device taken        serves it?  contexts, neighbours, holders
 *
 * Threads     One.
 * Failure     open: returns false if the recording lacks the events; then call no other function.
 * Limits      Those of answer.h.
 */
#ifndef GPC_REPORT_WHAT_IF_H
#define GPC_REPORT_WHAT_IF_H

#include "tools/gpumem-report/answer.h"
#include "tools/replay/policy.h"
#include "tools/replay/trace.h"

struct gpc_what_if {
	struct gpc_trace trace; /* the request is its last operation */
	struct gpc_policy_settings settings;
	const struct gpc_policy_ops *policy; /* as the run was */
	uint64_t device_bytes;
	uint64_t fixed_bytes; /* outside our segments */
	uint64_t live_bytes;  /* with the request; set by play */
};

bool gpc_what_if_open(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_what_if *ret_what_if);
void gpc_what_if_close(struct gpc_what_if *what_if);

/* Replays as it was and on the driver alone: sets is_whole, is_replayed, is_served_plain, plain_free_bytes. */
void gpc_what_if_play(struct gpc_what_if *what_if, struct gpc_answer *answer);

/* Adds the settings that serve the request to `remedies`; call after play. */
void gpc_what_if_try_settings(const struct gpc_what_if *what_if, struct gpc_answer *answer);

/* How many bytes less in use would have sufficed; 0: unknown. */
uint64_t gpc_what_if_enough(const struct gpc_what_if *what_if, const struct gpucache_oom *oom);

#endif
