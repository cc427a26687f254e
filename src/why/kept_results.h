/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a PyTorch program keeps too long, from the holders of a failure.
 *
 * A pass is one run of the model, forwards and perhaps backwards.  The running pass needs only its own tensors.
 *
 *      results   If tensors of many passes are live, the program keeps them (`total += loss`, a list of outputs).
 *                Every pass allocates on each call path from the program into the model, so the path with fewest live
 *                tensors has the number of passes
 *      outputs   The program computes tensors from the model's output (softmax), or the model is a package's: no path
 *                leads through a model of the program.  Such tensors count as kept if nearly all of one site are live,
 *                and the model ran as often
 *      inputs    Layers that share a stack free most of what it makes, and hide the results among it.  If a site keeps all
 *                inputs that it made, a stack that keeps one tensor for each counts as kept, too
 *      one pass  A loop over layers in a list, or over the words of a text, also makes many tensors, but within one
 *                pass.  Every pass has new inputs or gradients, or what is made beside the call of the model: with fewer than eight
 *                since the first allocation of the site with most activations, nothing counts as kept, and growth that
 *                the library found becomes less certain
 *
 * Threads     Pure functions, but for the evidence.
 * Failure     None: finds nothing.
 * Limits      Does not search if the library's verdict is growth.  Sees only holders that the failure lists, and
 *             recognizes a model by torch.nn.Module.  Copying a text to the GPU word by word counts as a pass per word;
 *             passes over the same input without a backward pass count as one.
 */
#ifndef GPC_WHY_KEPT_RESULTS_H
#define GPC_WHY_KEPT_RESULTS_H

#include "why/evidence.h"

struct gpc_kept {
	uint32_t stack;    /* the stack that keeps most; 0: nothing found */
	uint64_t bytes;    /* kept too long, by all stacks; at least half of the bytes in tensors */
	uint64_t n_passes; /* passes whose results are kept */
};

/*
 * True if the site of `holder` held, at the failure, more than half of all bytes that the site allocated in the whole
 * run.  *ret_first_ns becomes the time of the site's first allocation, unless the site was not recorded.
 */
bool gpc_kept_most(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder, uint64_t *ret_first_ns);

/* True if the blocks that made the library say "growth" may be activations of a single pass. */
bool gpc_kept_may_be_one_pass(const struct gpc_evidence *evidence, const struct gpucache_oom *oom);

/* True if they may be weights of a single model, which is still being built: none has run since they began to grow. */
bool gpc_kept_may_be_one_model(const struct gpc_evidence *evidence, const struct gpucache_oom *oom);

struct gpc_kept gpc_kept_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom);

#endif
