/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a PyTorch program keeps too long, from the holders of a failure.
 *
 *      results   one pass of a model holds what that pass needs; tensors of many passes are being kept
 *                (`total += loss`, a list of outputs).  Each line of the program and of the model that it
 *                called first holds a multiple of the passes, so the least count of any is how many there are
 *      outputs   made by the program of what the model said (softmax), or by a package's model: none of those lines is
 *                the program's own within a model.  All tensors of one place are there, and the model ran as often;
 *                what gives back most of its tensors is of the pass that runs
 *      one pass  may go through layers in a list, or the words of a text, and holds as many tensors.  Only
 *                between passes there are new data, or gradients: without eight of them since the first
 *                tensor that is held, nothing is said to be kept, and what the library found is less sure
 *
 * Threads     One.
 * Failure     None: finds nothing.
 * Limits      Does not search if the library found growth itself.  Goes by the holders that the failure lists,
 *             and by modules (torch.nn).  A text copied to the GPU word by word looks like as many passes; passes
 *             over the same tensor without a backward pass look like one.
 */
#ifndef GPC_REPORT_KEPT_H
#define GPC_REPORT_KEPT_H

#include "tools/gpumem-report/report.h"

struct gpc_kept {
	uint32_t stack;    /* that keeps most; 0: nothing found */
	uint64_t bytes;    /* kept too long, by all such stacks: most of what is in tensors */
	uint64_t n_passes; /* whose results are kept */
};

/*
 * True if the site of `holder` still holds more than half of all bytes it ever allocated, so perhaps the first of them;
 * *ret_first_ns is when it allocated those.  Totals are of the whole run, even if that went on after the failure.
 */
bool gpc_kept_most(const struct gpc_report *report, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder, uint64_t *ret_first_ns);

/* True if the blocks that the library took for growth may be activations of a single pass. */
bool gpc_kept_may_be_one_pass(const struct gpc_report *report, const struct gpucache_oom *oom);

struct gpc_kept gpc_kept_find(const struct gpc_report *report, const struct gpucache_oom *oom);

#endif
