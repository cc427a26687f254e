/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds memory that a PyTorch program still holds next to its replacement.
 *
 *      loaded    a checkpoint that torch.load put on the GPU it was saved from, next to the model that copied it
 *      failed    the tensors of a failed step, held by its exception while the next step runs
 *
 * Threads     One.
 * Failure     None: finds nothing.
 * Limits      Relies on the holders listed by the failures.
 */
#ifndef GPC_REPORT_TWICE_H
#define GPC_REPORT_TWICE_H

#include "tools/gpumem-report/report.h"

/* Each writes what would have helped.  Returns false if the case does not apply or would not have helped enough. */
bool gpc_twice_loaded(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);
bool gpc_twice_failed(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
