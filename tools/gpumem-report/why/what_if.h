/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays the events before a failed request, and the request, with one thing changed at a time.
 *
 *	events before the request --> the allocator as it was set   the control: must fail at the request, too
 *	                          '-> the driver without a cache    served: the pieces of our cache are the cause
 *	                          '-> with one more setting         served: the setting is advised
 *	                          '-> more of the device free       served: so many bytes were missing
 *
 * Threads     One.
 * Failure     gpc_what_if_open returns false if the recording lacks the events; then call no other function.
 * Limits      The replay's GPU hands out memory in steps of 2 MiB, as current drivers do.  Only requests for device
 *             memory are replayed.  Work on the GPU is not recorded, so in a replay it completes at once.
 */
#ifndef GPC_REPORT_WHAT_IF_H
#define GPC_REPORT_WHAT_IF_H

#include "tools/gpumem-report/report.h"
#include "tools/replay/policy.h"
#include "tools/replay/trace.h"
#include "why/why.h"

#define GPC_MAX_REMEDIES 2

/* The texts that the facts refer to. */
struct gpc_replayed_texts {
	char remedies[GPC_MAX_REMEDIES][48]; /* "max_split_size_mb:64" */
};

struct gpc_what_if {
	const struct gpc_recording *recording;
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

/* Replays with the allocator of the run, and on the driver alone: sets is_whole, is_replayed, plain_serves, plain_free. */
void gpc_what_if_play(struct gpc_what_if *what_if, struct gpc_facts *facts);

/* Sets the remedies: settings with which the request is served.  Call it after gpc_what_if_play. */
void gpc_what_if_try_settings(const struct gpc_what_if *what_if, struct gpc_facts *facts,
	struct gpc_replayed_texts *texts);

/*
 * Sets `enough`: the request would have been served with this many fewer bytes in use; and for a limit `enough_mib`, with
 * room for the threads that ran beside the one that failed.
 */
void gpc_what_if_enough(
	const struct gpc_what_if *what_if, const struct gpucache_oom *oom, struct gpc_facts *facts);

#endif
