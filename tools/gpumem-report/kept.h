/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a PyTorch program keeps too long, from the holders of a failure.
 *
 *      results   One pass holds only the tensors it needs.  If tensors of many passes are live, the program keeps them
 *                (`total += loss`, a list of outputs).  Every pass allocates on each path from the program into the
 *                model, so the smallest count of any path is the number of passes
 *      outputs   The program computes tensors from the model's output (softmax), or calls a model of a package: no path
 *                leads through the program's own model.  Kept if nearly all tensors of one site are live, and the model
 *                ran as often; sites that freed most of their tensors belong to the running pass
 *      one pass  A loop over layers in a list, or over the words of a text, makes as many tensors within one pass.  But
 *                new inputs and gradients come only between passes: without eight of them since the first held tensor,
 *                nothing counts as kept, and growth that the library found is less certain
 *
 * Threads     One.
 * Failure     None: finds nothing.
 * Limits      Does not search if the library found growth itself.  Relies on the holders that the failure lists, and
 *             on modules (torch.nn).  A text copied to the GPU word by word looks like as many passes; passes over the
 *             same tensor without a backward pass look like one.
 */
#ifndef GPC_REPORT_KEPT_H
#define GPC_REPORT_KEPT_H

#include "tools/gpumem-report/report.h"

struct gpc_kept {
	uint32_t stack;    /* the stack that keeps most; 0: nothing found */
	uint64_t bytes;    /* kept too long by all stacks: at least half of the bytes in tensors */
	uint64_t n_passes; /* passes whose results are kept */
};

/*
 * True if the site of `holder` held more than half of all bytes that it ever allocated.  *ret_first_ns is the time of
 * its first allocation, set if the site was recorded.  Its total is of the whole run, even of the time after the
 * failure.
 */
bool gpc_kept_most(const struct gpc_report *report, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder, uint64_t *ret_first_ns);

/* True if the blocks that the library took for growth may be activations of a single pass. */
bool gpc_kept_may_be_one_pass(const struct gpc_report *report, const struct gpucache_oom *oom);

struct gpc_kept gpc_kept_find(const struct gpc_report *report, const struct gpucache_oom *oom);

#endif
