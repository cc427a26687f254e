/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What torch.utils.checkpoint belongs around: not the lines that make most activations, whose inputs and results it would keep,
 * and not the whole model, which it would only compute twice, but each of the blocks that the model calls in a loop.
 *
 *      main                train.py:11                        the embedding has made 1 block: one pass
 *        GPT.forward       model.py:27   <-- here             each site has made 9 blocks, or more
 *          Block.forward   model.py:16
 *            attention     model.py:14   the site
 *
 * Threads     Pure functions, but for the evidence.
 * Failure     Nothing is found.
 * Limits      Goes by the program's own modules, and by what the model makes beside its blocks.
 */
#ifndef GPC_WHY_CHECKPOINTS_H
#define GPC_WHY_CHECKPOINTS_H

#include "why/evidence.h"

/* Appends "each Block where it is called, GPT.forward model.py:27", for the activations of this stack. */
void gpc_checkpoint_place(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	uint32_t stack, struct gpc_text *ret_text);

#endif
