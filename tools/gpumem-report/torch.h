/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a GPU is PyTorch's: its cache, how much of that is in tensors, and how much is in none.
 *
 *      live, as asked for          in PyTorch's tensors  +  free in PyTorch's cache  +  not PyTorch's
 *
 * Threads     One.
 * Failure     None.
 * Limits      Before format 1.4 what they were when a request failed is known by the holders of that
 *             moment only, where all of them are listed.
 */
#ifndef GPC_REPORT_TORCH_H
#define GPC_REPORT_TORCH_H

#include "tools/gpumem-report/report.h"

struct gpc_torch {
	uint64_t reserved; /* 0: it has nothing here */
	uint64_t in_tensors;
	uint64_t unused;
	uint64_t requested; /* the tensor that it gave up; 0: none, or not known */
};

/* Now, or at the end. */
struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal);

/* When a request failed. */
struct gpc_torch gpc_torch_at(const struct gpc_report *report, const struct gpucache_oom *oom);

/* "760.00 MiB are used on this GPU: contexts ... + PyTorch's tensors ... + ..." as a section. */
void gpc_torch_print_used(const struct gpc_report *report, const struct gpc_torch *torch,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS]);

/* Objects for JSON, which the caller owns: of a failure, and of now; NULL if PyTorch did not allocate. */
struct json_object *gpc_torch_json_at(
	const struct gpc_report *report, const struct gpucache_oom *oom);
struct json_object *gpc_torch_json(const struct gpc_report *report, int32_t ordinal);

#endif
