/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user of PyTorch can do about a failed request, by what the memory is for.
 *
 *      memory                what it is                     advice
 *      what grows            is computed in evaluate()      torch.no_grad() there
 *                            is computed elsewhere          .item(), .detach() of what is kept
 *                            is one result of each pass     .item(), or move it to the host
 *                            is put together by torch.cat   bound its length
 *                            is replaced by larger blocks   bound the input
 *      what was asked for    is an optimizer's state        an optimizer with less of it
 *                            are weights                    free those of another model, or half precision
 *                            is one large activation        that operation in parts
 *      most of it            are activations                a smaller batch, torch.utils.checkpoint
 *                            are some of generate()         a smaller batch, a shorter input
 *                            is pinned, for a loader        keep no batch
 *                            is a checkpoint, copied        free the checkpoint
 *                            is of a failed step            free its tensors before trying again
 *      PyTorch's cache       another library asked          torch.cuda.empty_cache()
 *
 * empty_cache and garbage_collection_threshold do not help a request of PyTorch itself: before it fails, PyTorch
 * returns every segment without a tensor anyway.
 *
 * Invariants  1 Each sentence follows from numbers or names in this recording.
 * Threads     One.
 * Failure     None.
 * Limits      Without stacks there is no advice: they tell what memory is for (purposes.h).
 */
#ifndef GPC_REPORT_REMEDIES_H
#define GPC_REPORT_REMEDIES_H

#include "tools/gpumem-report/report.h"

/*
 * Appends what held most: "7.19 GiB activations (Block.forward batch.py:16), ...".  Without PyTorch appends nothing.
 * For a request of host memory: how much was pinned, and where most of it.
 */
void gpc_remedies_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

/* Appends the call site of the stack for a sentence: "Block.forward batch.py:16". */
void gpc_remedies_add_site(const struct gpc_report *report, uint32_t stack, struct gpc_text *text);

/* Appends the advice to bound what the growing site makes, which replaces its blocks by larger ones. */
void gpc_remedies_add_bound(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text);

/* Appends the first advice that applies, in the order of the rules in remedies.c; false if none does. */
bool gpc_remedies_try(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text);

#endif
