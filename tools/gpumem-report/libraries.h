/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by the library that called the driver: NCCL, cuBLAS, PyTorch, the program itself.
 *
 *      libcuda.so.1      cuMemAlloc        the path to the driver: skipped
 *      libcudart.so.13   cudaMalloc        the same
 *      libnccl.so.2      ncclCommInit...   <-- NCCL: the innermost frame outside that path
 *      train             main
 *
 * A statically linked cudart counts as part of its library.  The names are in model/libraries.def.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 They add up to the holdings' bytes:
 *               memory without a stack and unlisted holders have rows, too.
 * Threads     One.
 * Failure     None.
 * Limits      Relies on the file that contains the code: a library linked into the program counts as the program.
 */
#ifndef GPC_REPORT_LIBRARIES_H
#define GPC_REPORT_LIBRARIES_H

#include "tools/gpumem-report/holdings.h"
#include "tools/gpumem-report/table.h"

void gpc_libraries_create(struct gpc_groups *libraries, const struct gpc_report *report,
	const struct gpc_holdings *holdings);

/* The library of one stack; never empty. */
void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text);

/* Prints the section. */
void gpc_libraries_print(
	const struct gpc_groups *libraries, const struct gpc_report *report, unsigned limit);

/* An array for JSON; the caller owns it. */
struct json_object *gpc_libraries_json(const struct gpc_groups *libraries);

#endif
