/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's function that evaluates a model, and whether it keeps what only a backward pass would need:
 *
 *      train     forward, backward    forward, backward
 *      validate                                            forward: 5 of 11 results live, and no gradient since the first
 *
 * With torch.no_grad() all but the last few results of a pass are freed as it goes.
 *
 * Threads     Pure functions, but for the evidence.
 * Failure     None is found.
 * Limits      Goes by the names of functions, and sees the first pass only: those before it are freed.
 */
#ifndef GPC_WHY_EVALUATION_H
#define GPC_WHY_EVALUATION_H

#include "why/evidence.h"

/* The innermost frame of the program whose name suggests evaluation; -1: there is none. */
int gpc_evaluation_find(const struct gpc_stack_frames *stack);

/* True if this function, which gpc_evaluation_find() has found, keeps most of what it has made. */
bool gpc_evaluation_keeps(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpc_frame *function);

#endif
