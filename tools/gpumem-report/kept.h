/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's programs keep too long, told from what is held at a failure.
 *
 *      results   one pass of a model holds what that pass needs; tensors of many passes are kept by somebody
 *                (`total += loss`, a list of outputs).  Each line of the program and of the model that it
 *                called first holds a multiple of the passes, so the least count of any is how many there are
 *
 * Threads     One.
 * Failure     None: nothing is found.
 * Limits      Nothing is looked for where the library found growth itself.  Goes by the holders that the
 *             failure lists.  Without modules (torch.nn), or where one line is all that holds results, steps
 *             cannot be told from layers, and nothing is found.
 */
#ifndef GPC_REPORT_KEPT_H
#define GPC_REPORT_KEPT_H

#include "tools/gpumem-report/report.h"

struct gpc_kept {
	uint32_t stack;    /* that keeps most; 0: nothing was found */
	uint64_t bytes;    /* kept too long, by all such stacks: most of what is in tensors */
	uint64_t n_passes; /* that results are kept of */
};

struct gpc_kept gpc_kept_find(const struct gpc_report *report, const struct gpucache_oom *oom);

#endif
