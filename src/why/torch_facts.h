/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a failure of PyTorch that need the names of frames: what memory is for, and which line of the program
 * keeps it.
 *
 * Threads     Pure functions, but for the evidence.
 * Failure     None: without stacks these facts are unknown.
 * Limits      Relies on the names of functions and files (purposes.h).  Needs some 8 KiB of stack.
 */
#ifndef GPC_WHY_TORCH_FACTS_H
#define GPC_WHY_TORCH_FACTS_H

#include "why/evidence.h"
#include "why/why.h"

#define GPC_PLACE_SIZE 400

/* Fewer activations may be those of a pass that keeps none. */
#define GPC_FOR_BACKWARD 8

/* The texts that the facts refer to. */
struct gpc_torch_texts {
	char weights_place[GPC_PLACE_SIZE];
	char activations_place[GPC_PLACE_SIZE];
	char checkpoint_place[GPC_PLACE_SIZE];
	char inputs_place[GPC_PLACE_SIZE];
	char loop_place[GPC_PLACE_SIZE];
	char maker_place[GPC_PLACE_SIZE];
	char backward_place[GPC_PLACE_SIZE];
	char evaluation_place[GPC_PLACE_SIZE];
	char validating_place[GPC_PLACE_SIZE];
	char failed_place[GPC_PLACE_SIZE];
	char loaded_place[GPC_PLACE_SIZE];
	char copy_place[GPC_PLACE_SIZE];
};

/* True if PyTorch held memory on the device that failed.  XLA's arrays have no Python frames of PyTorch to judge by. */
static inline bool gpc_is_of_torch(const struct gpucache_oom *oom)
{
	return oom->torch.reserved && oom->framework == GPUCACHE_FRAMEWORK_PYTORCH &&
	       gpucache_kind_place(oom->kind) != GPUCACHE_ON_HOST;
}

/* Sets the facts of NAMES about PyTorch's memory in *facts, which has those of the MOMENT. */
void gpc_torch_facts(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_torch_texts *texts);

/*
 * Appends what held most: "7.19 GiB activations (Block.forward batch.py:16), 3.69 GiB weights (among others ...)", by the
 * place with the largest part.  Without PyTorch appends nothing.
 */
void gpc_say_held(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_text *ret_text);

#endif
