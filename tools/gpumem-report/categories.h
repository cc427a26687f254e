/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's memory is for, told from where it was asked for.
 *
 *      Adam._init_group  torch/optim/adam.py       optimizer state     the innermost frame that tells
 *      train_step  train.py:40                                         decides
 *
 * Invariants  1 The categories, what is not listed and PyTorch's unused cache add up to the holdings'
 *               bytes, less contexts and modules.
 * Threads     One.
 * Failure     None.
 * Limits      Goes by the names of functions and files.  What a forward pass made counts as
 *             activations, whether or not it is kept for a backward pass.
 */
#ifndef GPC_REPORT_CATEGORIES_H
#define GPC_REPORT_CATEGORIES_H

#include "tools/gpumem-report/holdings.h"

/* A section of its own; nothing for a device without PyTorch. */
void gpc_categories_print(const struct gpc_holdings *holdings, const struct gpc_report *report);

/* Adds the array `categories`, which is empty without PyTorch. */
void gpc_categories_json(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct json_object *object);

#endif
