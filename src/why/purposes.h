/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies PyTorch's memory by purpose, from the stacks of its allocations.
 *
 *      Adam._init_group  torch/optim/adam.py       optimizer state     the innermost frame with a rule
 *      train_step  train.py:40                                         decides
 *
 * Threads     Pure functions.
 * Failure     None.
 * Limits      Relies on the names of functions and files.  The batches of a loader and the program's own buffers cannot
 *             be distinguished: both are inputs.  All results of a forward pass are activations, whether or not a
 *             backward pass needs them.
 */
#ifndef GPC_WHY_PURPOSES_H
#define GPC_WHY_PURPOSES_H

#include "names/frames.h"
#include "why/why.h"

/* The purpose of the memory that was requested with this stack; NULL: not recorded. */
enum gpc_purpose gpc_purpose_of(const struct gpc_stack_frames *stack);

struct gpc_purpose_row {
	enum gpc_purpose purpose;
	uint64_t bytes;
	uint64_t n_blocks;
	uint32_t stack; /* the stack that holds most of it */
	uint64_t stack_bytes;
};

struct gpc_purpose_share {
	uint32_t stack;
	uint64_t bytes;
	uint64_t n_blocks;
};

/* One row per purpose: makes them empty, adds what a stack holds, and sorts them, biggest first.  sort returns the sum. */
void gpc_purpose_rows_init(struct gpc_purpose_row rows[GPC_N_PURPOSES]);
void gpc_purpose_rows_add(struct gpc_purpose_row rows[GPC_N_PURPOSES], enum gpc_purpose purpose,
	const struct gpc_purpose_share *share);
uint64_t gpc_purpose_rows_sort(struct gpc_purpose_row rows[GPC_N_PURPOSES]);

static inline const struct gpc_purpose_row *gpc_purpose_row_of(
	const struct gpc_purpose_row rows[GPC_N_PURPOSES], enum gpc_purpose purpose)
{
	while (rows->purpose != purpose)
		rows++;
	return rows;
}

#endif
