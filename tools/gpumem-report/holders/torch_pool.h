/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's part of the live bytes: PyTorch has a cache of its own, which takes large blocks and cuts tensors from
 * them.
 *
 *      held by the program  =  in PyTorch's tensors  +  free in PyTorch's cache  +  not PyTorch's
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
	uint64_t framework; /* enum gpucache_framework */
};

/* The present sums of the device, or those at the end. */
struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal);

/* Whether PyTorch has memory of the device, or had some when a request failed. */
bool gpc_torch_is_there(const struct gpc_report *report, int32_t ordinal);

/* The sums of the failure's device when the request failed. */
struct gpc_torch gpc_torch_at(const struct gpucache_oom *oom);

/*
 * Adds the balance sheet of a device to the section in progress, at a failure or with oom NULL now, or at the end; and
 * the section USED if PyTorch has memory there: "760.00 MiB, as nvidia-smi counts: ...".
 */
void gpc_torch_show_sheet(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS],
	const struct gpucache_oom *oom);

/* Adds the object `torch`, in JSON: the sums at a failure, and at the end.  null: PyTorch did not allocate. */
void gpc_torch_tell_at(const struct gpc_report *report, const struct gpucache_oom *oom);
void gpc_torch_tell(const struct gpc_report *report, int32_t ordinal);

#endif
