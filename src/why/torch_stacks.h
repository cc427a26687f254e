/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one stack of a program of PyTorch tells.
 *
 * Threads   Pure functions.
 * Failure   False, or -1.
 */
#ifndef GPC_WHY_TORCH_STACKS_H
#define GPC_WHY_TORCH_STACKS_H

#include "names/frames.h"

bool gpc_torch_is_of_program(const struct gpc_frame *frame);

/*
 * The line that uses a model, and may keep what it returned: the innermost one of the program but for those that PyTorch
 * called, as it calls each forward() and not what torch.no_grad() decorates.  Does not look beyond a trainer (Lightning,
 * transformers) that calls the program back: the functions beyond it wait for the trainer, and keep no results.  -1: there
 * is none.
 */
int gpc_torch_user_of(const struct gpc_stack_frames *stack);

/* True in a function that torch.no_grad() or torch.inference_mode() decorates, such as generate() of transformers. */
bool gpc_torch_is_decorated(const struct gpc_stack_frames *stack);

/* True in a forward() of the program that no module is called for: that of a torch.autograd.Function. */
bool gpc_torch_is_in_function(const struct gpc_stack_frames *stack);

/* True if a line of the program calls copy.deepcopy(): torch.nn copies the layers of a model, too. */
bool gpc_torch_is_copied(const struct gpc_stack_frames *stack);

/* True if a node of the backward pass asks. */
bool gpc_torch_passes_node(const struct gpc_stack_frames *stack);

#endif
