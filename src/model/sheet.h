/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balance sheet as a section of a document:
 *
 *           120.00 GiB   85.7 %  held by the program
 *           100.00 GiB   71.4 %    in PyTorch's tensors       a part of the line above
 *       +   600.00 MiB    0.4 %  lost to rounding
 *       =   129.88 GiB   92.7 %  taken through gpucache       not in the brief form
 *       +     1.53 GiB    1.1 %  free on the GPU, 3.10 GiB wanted
 *       =   140.00 GiB  100.0 %  all of the GPU
 *             7.00 GiB    5.0 %  beyond it, spilled to host memory
 *
 * Text leaves out lines of zero bytes, except the first and the free memory; the brief form also unknown ones, and parts
 * below 1 % of the GPU.  JSON has a member for each line.
 *
 * Threads   Pure functions.
 * Failure   None.
 * Limits    One device.
 */
#ifndef GPC_MODEL_SHEET_H
#define GPC_MODEL_SHEET_H

#include "document/document.h"
#include "model/balance.h"

/* The columns of the section, which is an object with its rows beside the label. */
extern const struct gpc_column gpc_sheet_columns[4];
#define GPC_SHEET_FLAGS (GPC_OBJECT | GPC_BESIDE)

struct gpc_sheet {
	const struct gpucache_balance *balance;
	const uint64_t *
		kind_bytes; /* [GPUCACHE_MAX_KINDS]: the parts of what came straight from the driver */
	uint64_t torch_reserved; /* PyTorch's cache; 0: none */
	uint64_t torch_unused;   /* of it, in no tensor */
	uint64_t wanted;         /* by a request that failed; 0: none */
	uint64_t framework;      /* whose cache: enum gpucache_framework */
};

/* Adds the sheet to the section in progress. */
void gpc_sheet_show(struct gpc_document *doc, const struct gpc_sheet *sheet);

#endif
