/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tool offers besides reading traces.  kit.c is what users get; tests/bench/replay links the same tool with a kit
 * that also generates and saves traces, and has policies that show what the others prevent.
 */
#ifndef GPC_REPLAY_KIT_H
#define GPC_REPLAY_KIT_H

#include "base/text.h"
#include "tools/replay/policy.h"
#include "tools/replay/trace.h"

struct gpc_kit {
	const struct gpc_policy_ops *const *policies;
	size_t n_policies; /* at most GPC_MAX_POLICIES */

	/* Options -g and --save; all NULL: there are none. */

	/* Makes the trace of a workload.  GPC_INVALID with a message in `why`: there is none of this name, or key. */
	enum gpc_status (*generate)(
		const char *spec, struct gpc_text *why, struct gpc_trace *ret_trace);
	/* Writes the trace as a log of RMM; false with errno: it could not. */
	bool (*save)(const struct gpc_trace *trace, const char *path);
	/* Prints the two options, the workloads and their keys. */
	void (*print_help)(void);
};

extern const struct gpc_kit gpc_kit;

#endif
