/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's part of a GPU: its cache, in tensors and unused.
 *
 *      live, as asked for          in PyTorch's tensors  +  free in PyTorch's cache  +  not PyTorch's
 *
 * Threads     One.
 * Failure     None.
 * Limits      Before format 1.4, the part at a failure is known only if the failure lists all holders.
 */
#ifndef GPC_REPORT_TORCH_H
#define GPC_REPORT_TORCH_H

#include "tools/gpumem-report/report.h"

struct gpc_torch {
	uint64_t reserved; /* 0: no PyTorch memory here */
	uint64_t in_tensors;
	uint64_t unused;
	uint64_t requested; /* the tensor that it failed to allocate; 0: none, or unknown */
};

/* Now, or at the end. */
struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal);

/* When a request failed. */
struct gpc_torch gpc_torch_at(const struct gpc_report *report, const struct gpucache_oom *oom);

/* "760.00 MiB are used on this GPU: contexts ... + PyTorch's tensors ... + ..." as a section. */
void gpc_torch_print_used(const struct gpc_report *report, const struct gpc_torch *torch,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS]);

/* For JSON, at a failure and now; the caller owns the objects.  NULL if PyTorch did not allocate. */
struct json_object *gpc_torch_json_at(
	const struct gpc_report *report, const struct gpucache_oom *oom);
struct json_object *gpc_torch_json(const struct gpc_report *report, int32_t ordinal);

#endif
