/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes held by each stack at a moment: the input of every table of holders.
 *
 *      live blocks --------------+--> holdings --+--> sites       by call site
 *      a failure's list ---------+               +--> libraries   by the library that called the driver
 *      a peak's list ------------'               '--> categories  by purpose
 *
 * Invariants  1 The rows, `torch_bytes`, `refused_bytes` and `rest_bytes` add up to `total_bytes`.  2 They are of one device, unless
 *               the caller passed ordinal -1.
 * Threads     One.
 * Failure     None.
 * Limits      A failure and a peak list only their biggest stacks; the bytes of the others are in rest_bytes.
 */
#ifndef GPC_REPORT_HOLDINGS_H
#define GPC_REPORT_HOLDINGS_H

#include "tools/gpumem-report/holders/holder_rows.h"
#include "tools/gpumem-report/holders/moment.h"

struct gpc_holdings {
	struct gpc_row *rows; /* one per GPU, stack and kind */
	size_t n;
	uint64_t total_bytes;
	uint64_t rest_bytes;    /* of stacks that are not listed */
	uint64_t torch_bytes;   /* in PyTorch's cache, outside tensors */
	uint64_t framework;     /* or in that of another: enum gpucache_framework */
	uint64_t refused_bytes; /* of segments that the driver did not take back */
	bool has_torch;         /* PyTorch allocated on the device */
};

/* Makes the holdings from the list in the record of a failure. */
void gpc_holdings_from_oom(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpucache_oom *oom);

/* Makes the holdings from the blocks that are live now, or at the end: on one device, or with ordinal -1 on all. */
void gpc_holdings_from_live(
	struct gpc_holdings *holdings, const struct gpc_report *report, int32_t ordinal);

/* Makes the holdings from the list of a peak. */
void gpc_holdings_from_peak(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpucache_peak *peak);

/* Makes the holdings of the moment; none if the recording does not have it. */
void gpc_holdings_at(struct gpc_holdings *holdings, const struct gpc_report *report,
	const struct gpc_moment *moment);

void gpc_holdings_fini(struct gpc_holdings *holdings);

/* Adds the sections HOLDERS, with the title and the first n_rows call sites, CATEGORY and LIBRARY. */
void gpc_holdings_show(const struct gpc_holdings *holdings, const struct gpc_report *report,
	unsigned n_rows, const char *title);

#endif
