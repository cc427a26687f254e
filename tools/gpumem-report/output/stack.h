/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a stack, innermost first, as the section `stack`. */
#ifndef GPC_REPORT_STACK_H
#define GPC_REPORT_STACK_H

#include "tools/gpumem-report/report.h"

/*
 * Adds the stack.  JSON has all frames.  Text with a limit other than 0 has the first of a long run of native library
 * frames, and a line for the others; after `limit` lines, native frames outside such runs are left out.
 */
void gpc_stack_show(const struct gpc_report *report, uint32_t id, unsigned limit);

#endif
