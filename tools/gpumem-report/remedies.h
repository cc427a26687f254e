/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user of PyTorch can do about a failed request, by what the memory is for.
 *
 *      what grows            is computed in evaluate()      torch.no_grad() there
 *                            is computed elsewhere          .item(), .detach() of what is kept
 *                            is one result of each pass     the same, on the host
 *                            is put together by torch.cat   a bound
 *                            is replaced by larger blocks   a bound of the input
 *      what was asked for    is an optimizer's state        an optimizer with less of it
 *                            are weights                    those of another model, or half precision
 *                            is one large activation        that operation in parts
 *      most of it            are activations                a smaller batch, torch.utils.checkpoint
 *                            are some of generate()         a smaller batch, a shorter input
 *                            is pinned, for a loader        no batch kept
 *      it is a loaded checkpoint, or of a failed step        free the checkpoint, or the failed step's tensors, first
 *      another asked         PyTorch has free segments      torch.cuda.empty_cache()
 *
 * empty_cache and garbage_collection_threshold do not help a request of PyTorch itself: before it fails, PyTorch
 * returns every segment without a tensor anyway.
 *
 * Invariants  1 Each sentence rests on numbers or names in this recording.
 * Threads     One.
 * Failure     Out of memory: says nothing.
 * Limits      Relies on stacks, as categories.h does.
 */
#ifndef GPC_REPORT_REMEDIES_H
#define GPC_REPORT_REMEDIES_H

#include "tools/gpumem-report/report.h"

/*
 * "7.19 GiB activations (Block.forward batch.py:16), ..."; nothing without PyTorch.  For a request of host
 * memory: how much was pinned, and where most of it.
 */
void gpc_remedies_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

/* "Block.forward batch.py:16", as in a sentence. */
void gpc_remedies_add_site(const struct gpc_report *report, uint32_t stack, struct gpc_text *text);

/* Appends advice for a site that replaces its blocks by larger ones. */
void gpc_remedies_add_bound(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text);

/* What to do.  Returns false if PyTorch has no remedy. */
bool gpc_remedies_try(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
