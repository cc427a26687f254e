/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a failure that need the names of frames: those of PyTorch (why/torch_facts.h), and of other owners.
 *
 * Threads     One.
 * Failure     None: without stacks these facts are unknown.
 */
#ifndef GPC_REPORT_NAMED_FACTS_H
#define GPC_REPORT_NAMED_FACTS_H

#include "tools/gpumem-report/report.h"
#include "why/torch_facts.h"

/* The texts that the facts refer to. */
struct gpc_named_texts {
	struct gpc_torch_texts torch;
	char framework_less[2 * GPC_PLACE_SIZE];
	char gpu[24];
};

/* Sets all facts of NAMES in *facts, which has those of the MOMENT. */
void gpc_named_facts(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts);

/*
 * Appends what held most (gpc_say_held).  For a request of host memory: how much was pinned, and where most of it.
 */
void gpc_report_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
