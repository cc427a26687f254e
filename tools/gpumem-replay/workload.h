/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads: traces that nobody recorded, with streams and the work of the device, which no public
 * trace has.
 *
 *      training:steps=4,seed=7   --gpc_workload_make-->   struct gpc_trace
 *
 * What is freed is mostly still in use by a kernel, as in real programs: whoever reuses it at once
 * is caught by the race detector.
 *
 * Invariants  1 The same text gives the same trace, everywhere.  2 A kernel that uses a block of
 *               another stream is ordered behind that stream first: the program itself is right.
 * Threads     One.
 * Failure     GPC_INVALID: no such workload, key or value; GPC_NO_METADATA.  `why` says it.
 * Limits      One host thread.  The host waits for the whole device or not at all.
 */
#ifndef GPC_REPLAY_WORKLOAD_H
#define GPC_REPLAY_WORKLOAD_H

#include "tools/replay/trace.h"

/* `spec`: NAME or NAME:key=value,...; it is the path of the trace, and must live as long. */
GPC_MUST_CHECK enum gpc_status gpc_workload_make(
	const char *spec, struct gpc_text *why, struct gpc_trace *ret_trace);

/* Names, keys and defaults, for the help. */
void gpc_workload_print_help(void);

#endif
