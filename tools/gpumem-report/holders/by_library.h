/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by the library that called the driver: NCCL, cuBLAS, PyTorch, the program itself.
 *
 *      libcuda.so.1      cuMemAlloc        skipped: the driver
 *      libcudart.so.13   cudaMalloc        skipped: the runtime
 *      libnccl.so.2      ncclCommInit...   <-- NCCL: the first frame that is not skipped
 *      train             main
 *
 * If a library links the runtime statically, that is one module, and counts as the library.  The names are in
 * model/libraries.def.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 They add up to the bytes of the holdings: there are rows
 *               for memory without a stack, and for stacks that are not listed.
 * Threads     One.
 * Failure     None.
 * Limits      Relies on the file that contains the code: a library linked into the program counts as the program.
 */
#ifndef GPC_REPORT_LIBRARIES_H
#define GPC_REPORT_LIBRARIES_H

#include "tools/gpumem-report/holders/groups.h"
#include "tools/gpumem-report/holders/holdings.h"

#define GPC_THE_DRIVER "(the driver)" /* holds what it did not take back */

void gpc_libraries_create(struct gpc_groups *libraries, const struct gpc_report *report,
	const struct gpc_holdings *holdings);

/* Appends the library of one stack, or why it is unknown: "(no stack was taken)". */
void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text);

/* Adds the section LIBRARY. */
void gpc_libraries_show(const struct gpc_groups *libraries, struct gpc_document *doc);

#endif
