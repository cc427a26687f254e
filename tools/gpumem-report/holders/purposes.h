/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section CATEGORY: PyTorch's memory by purpose (why/purposes.h).
 *
 * Invariants  1 The rows, unlisted holders and PyTorch's unused cache add up to the holdings'
 *               bytes, less contexts and modules.
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_PURPOSES_H
#define GPC_REPORT_PURPOSES_H

#include "tools/gpumem-report/holders/holdings.h"
#include "why/purposes.h"

/* Fills one row per purpose, biggest first, empty ones last.  Returns the sum of their bytes. */
uint64_t gpc_purposes_sum(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct gpc_purpose_row rows[GPC_N_PURPOSES]);

/* Adds the section CATEGORY, which is empty for a device without PyTorch. */
void gpc_purposes_show(const struct gpc_holdings *holdings, const struct gpc_report *report);

#endif
