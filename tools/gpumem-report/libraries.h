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
 * Limits      Goes by the file that holds the code: a library linked into the program is the
 *             program.
 */
#ifndef GPC_REPORT_LIBRARIES_H
#define GPC_REPORT_LIBRARIES_H

#include "tools/gpumem-report/holdings.h"

struct gpc_library {
	char name[64];
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_libraries {
	struct gpc_library *rows;
	size_t n;
	uint64_t total_bytes;
};

void gpc_libraries_create(struct gpc_libraries *libraries, const struct gpc_report *report,
	const struct gpc_holdings *holdings);
void gpc_libraries_fini(struct gpc_libraries *libraries);

/* The library of one stack; never empty. */
void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text);

/* Prints the section. */
void gpc_libraries_print(
	const struct gpc_libraries *libraries, const struct gpc_report *report, unsigned limit);

/* An array for JSON; the caller owns it. */
struct json_object *gpc_libraries_json(const struct gpc_libraries *libraries);

#endif
