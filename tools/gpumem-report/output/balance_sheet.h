/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balance sheet and stacks, as text.
 *
 *      live, as asked for               123.90 GiB   88.6 %
 *    + lost to rounding                   0.60 GiB    0.4 %
 *    + straight from the driver           5.00 GiB    3.6 %
 *        stream-ordered memory            4.50 GiB            a part of the line above
 *    ...
 *    = all of the GPU                   139.80 GiB  100.0 %   difference 0
 *
 * Lines of zero bytes are omitted, except the first one and `free`.  Unknown values are printed as "unknown".
 *
 * Threads     One.
 * Failure     None.
 * Limits      One device.
 */
#ifndef GPC_REPORT_SHEET_H
#define GPC_REPORT_SHEET_H

#include "tools/gpumem-report/holders/torch_pool.h"

/*
 * Prints the balance sheet of device `ordinal`, and the section USED if PyTorch has memory there.  `kind_bytes`: the
 * parts of the line `direct`.  `oom`: the failure at which the sheet was taken; NULL: now, or at the end.
 */
void gpc_sheet_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS],
	const struct gpucache_oom *oom);

/*
 * Prints the frames of a stack, innermost first.  With a limit other than 0, of a long run of native library frames
 * only the first is printed, and a line for the others; after `limit` lines, native frames outside such runs are left
 * out.
 */
void gpc_stack_print(const struct gpc_report *report, uint32_t id, unsigned limit);

#endif
