/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory that the program could have freed: a leak, if the process has ended.
 *
 *      contexts and modules                              left out: the driver's
 *      cuBLAS called by PyTorch                          kept: held by libraries until the process ends
 *      cuBLAS called by the program, and all the rest    a leak
 *
 * A stack with LOOP_BLOCKS blocks and more is a leak in any case: a loop makes handles that nobody destroys.
 *
 * Threads     One.
 * Failure     None.
 * Limits      As holders/by_library.h.  Memory without a stack is a leak.
 */
#ifndef GPC_REPORT_LEAKS_H
#define GPC_REPORT_LEAKS_H

#include "tools/gpumem-report/holders/holdings.h"

struct gpc_leaks {
	struct gpc_row *rows; /* one per GPU and stack */
	size_t n;
	struct gpc_row *kept;
	size_t n_kept;
	struct gpc_holdings holdings; /* owns both */
};

void gpc_leaks_find(struct gpc_leaks *leaks, const struct gpc_report *report);
void gpc_leaks_fini(struct gpc_leaks *leaks);

bool gpc_leaks_exist(const struct gpc_report *report);

#endif
