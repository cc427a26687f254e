/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the events before a failed request, and the request, with one thing changed at a time.  answer.h has the
 * replays, and what follows from each.
 *
 * Threads     One.
 * Failure     gpc_what_if_open returns false if the recording lacks the events; then call no other function.
 * Limits      Those of answer.h.
 */
#ifndef GPC_REPORT_WHAT_IF_H
#define GPC_REPORT_WHAT_IF_H

#include "tools/gpumem-report/why/answer.h"
#include "tools/replay/policy.h"
#include "tools/replay/trace.h"

struct gpc_what_if {
	struct gpc_trace trace; /* the request is its last operation */
	struct gpc_policy_settings settings;
	const struct gpc_policy_ops *policy; /* the allocator that the run had */
	uint64_t device_bytes;
	uint64_t fixed_bytes; /* used on the device, but not by our segments */
	uint64_t live_bytes;  /* the request included; set by gpc_what_if_play */
};

bool gpc_what_if_open(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_what_if *ret_what_if);
void gpc_what_if_close(struct gpc_what_if *what_if);

/*
 * Replays with the allocator of the run, and on the driver alone.  Sets is_whole, is_replayed, is_served_plain and
 * plain_free_bytes of the answer.
 */
void gpc_what_if_play(struct gpc_what_if *what_if, struct gpc_answer *answer);

/* Adds to answer->remedies the settings with which the request is served.  Call it after gpc_what_if_play. */
void gpc_what_if_try_settings(const struct gpc_what_if *what_if, struct gpc_answer *answer);

/* The request would have been served with this many fewer bytes in use; 0: unknown. */
uint64_t gpc_what_if_enough(const struct gpc_what_if *what_if, const struct gpucache_oom *oom);

#endif
