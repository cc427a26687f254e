/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies PyTorch's memory by purpose, from the stacks of its allocations.
 *
 *      Adam._init_group  torch/optim/adam.py       optimizer state     the innermost frame with a rule
 *      train_step  train.py:40                                         decides
 *
 * Invariants  1 The rows, unlisted holders and PyTorch's unused cache add up to the holdings'
 *               bytes, less contexts and modules.
 * Threads     One.
 * Failure     None.
 * Limits      Relies on the names of functions and files.  The batches of a loader and the program's own buffers cannot
 *             be distinguished: both are inputs.  All results of a forward pass are activations, whether or not a
 *             backward pass needs them.
 */
#ifndef GPC_REPORT_CATEGORIES_H
#define GPC_REPORT_CATEGORIES_H

#include "tools/gpumem-report/holders/holdings.h"
#include "why/why.h"

struct gpc_purpose_row {
	enum gpc_purpose purpose;
	uint64_t bytes;
	uint64_t n_blocks;
	uint32_t stack; /* the stack that holds most of it */
	uint64_t stack_bytes;
};

/* The purpose of the memory that was requested with stack `id`. */
enum gpc_purpose gpc_purpose_of(const struct gpc_report *report, uint32_t id);

/* Fills one row per purpose, biggest first, empty ones last.  Returns the sum of their bytes. */
uint64_t gpc_purposes_sum(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct gpc_purpose_row rows[GPC_N_PURPOSES]);

/* Adds the section CATEGORY, which is empty for a device without PyTorch. */
void gpc_purposes_show(const struct gpc_holdings *holdings, const struct gpc_report *report);

#endif
