/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads: generated traces, with streams and device work, which public traces lack.
 *
 *      training:steps=4,seed=7   --gpc_workload_make-->   struct gpc_trace
 *
 * As in real programs, kernels still use most memory when it is freed: the race detector catches
 * a policy that reuses it at once.
 *
 * Invariants  1 The same text gives the same trace on every machine.  2 A kernel that uses a block of
 *               another stream is ordered behind that stream: the program itself has no race.
 * Threads     One.
 * Failure     GPC_INVALID: no such workload, key or value.  `why` has the message.
 * Limits      One host thread.  The host waits for the whole device or not at all.
 */
#ifndef GPC_REPLAY_WORKLOAD_H
#define GPC_REPLAY_WORKLOAD_H

#include "tools/replay/trace.h"

/* `spec`: NAME or NAME:key=value,...; it becomes the trace's path, and must live as long. */
GPC_MUST_CHECK enum gpc_status gpc_workload_make(
	const char *spec, struct gpc_text *why, struct gpc_trace *ret_trace);

/* Prints names, keys and defaults. */
void gpc_workload_print_help(void);

#endif
