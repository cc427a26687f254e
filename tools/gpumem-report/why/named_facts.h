/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a failure that need the names of frames: what memory is for, and which line of the program keeps it.
 *
 * Threads     One.
 * Failure     None: without stacks these facts are unknown.
 * Limits      Relies on the names of functions and files (purposes.h).
 */
#ifndef GPC_REPORT_NAMED_FACTS_H
#define GPC_REPORT_NAMED_FACTS_H

#include "tools/gpumem-report/report.h"
#include "why/why.h"

#define GPC_PLACE_SIZE 400

/* The texts that the facts refer to. */
struct gpc_named_texts {
	char weights_place[GPC_PLACE_SIZE];
	char activations_place[GPC_PLACE_SIZE];
	char loop_place[GPC_PLACE_SIZE];
	char backward_place[GPC_PLACE_SIZE];
	char evaluation_place[GPC_PLACE_SIZE];
	char failed_place[GPC_PLACE_SIZE];
	char loaded_place[GPC_PLACE_SIZE];
	char framework_less[2 * GPC_PLACE_SIZE];
};

/* Sets all facts of NAMES in *facts, which has those of the MOMENT. */
void gpc_named_facts(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts);

/*
 * Appends what held most: "7.19 GiB activations (Block.forward batch.py:16), ...".  Without PyTorch appends nothing.
 * For a request of host memory: how much was pinned, and where most of it.
 */
void gpc_say_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
