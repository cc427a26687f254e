/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's part of the live bytes: PyTorch has a cache of its own, which takes large blocks and cuts tensors from
 * them.
 *
 *      live, as asked for  =  in PyTorch's tensors  +  free in PyTorch's cache  +  not PyTorch's
 *
 * Threads     One.
 * Failure     None.
 * Limits      None.
 */
#ifndef GPC_REPORT_TORCH_H
#define GPC_REPORT_TORCH_H

#include "tools/gpumem-report/report.h"

struct gpc_torch {
	uint64_t reserved; /* 0: no PyTorch memory here */
	uint64_t in_tensors;
	uint64_t unused;
	uint64_t requested; /* by the tensor that PyTorch failed to allocate; 0: none, or unknown */
};

/* The present sums of the device, or those at the end. */
struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal);

/* The sums of the failure's device when the request failed. */
struct gpc_torch gpc_torch_at(const struct gpucache_oom *oom);

/* Prints the section USED: what the GPU's used bytes consist of, "760.00 MiB, as nvidia-smi counts: ...". */
void gpc_torch_print_used(const struct gpc_report *report, const struct gpc_torch *torch,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS]);

/* The sums as a JSON object, which the caller owns: at a failure, and at the end.  NULL: PyTorch did not allocate. */
struct json_object *gpc_torch_json_at(const struct gpucache_oom *oom);
struct json_object *gpc_torch_json(const struct gpc_report *report, int32_t ordinal);

#endif
