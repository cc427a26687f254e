/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's programs hold beside what took its place.
 *
 *      loaded    a checkpoint that torch.load put where it was saved from, the GPU, beside the model that copied it
 *      failed    what a step had made when memory ran out, held by the exception, while the next step runs
 *
 * Threads     One.
 * Failure     None: nothing is found, and nothing is said.
 * Limits      Goes by the holders that the failures list.
 */
#ifndef GPC_REPORT_TWICE_H
#define GPC_REPORT_TWICE_H

#include "tools/gpumem-report/report.h"

/* What this place held; NULL: nothing, or too little to be listed. */
const struct gpucache_holder *gpc_twice_holder(const struct gpucache_oom *oom, uint32_t stack);

/* Each says what would have helped; false: that is not the case, or not enough. */
bool gpc_twice_loaded(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);
bool gpc_twice_failed(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
