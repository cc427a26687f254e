/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, by the library that asked the driver for it: NCCL, cuBLAS, PyTorch, the program
 * itself.
 *
 *      libcuda.so.1      cuMemAlloc        on the way to the driver: looked through
 *      libcudart.so.13   cudaMalloc        the same
 *      libnccl.so.2      ncclCommInit...   <-- NCCL: the innermost frame that is not
 *      train             main
 *
 * A library with a cudart of its own, linked statically, is found as well: that code is its own.
 * The names are model/libraries.def.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 They add up to the holdings' bytes:
 *               what has no stack, and what the recording does not list, are rows as well.
 * Threads     One.
 * Failure     GPC_NO_METADATA.
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

GPC_MUST_CHECK enum gpc_status gpc_libraries_create(struct gpc_libraries *libraries,
	const struct gpc_report *report, const struct gpc_holdings *holdings);
void gpc_libraries_fini(struct gpc_libraries *libraries);

/* The library of one stack, in words for every case. */
void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text);

/* A section of its own. */
void gpc_libraries_print(
	const struct gpc_libraries *libraries, const struct gpc_report *report, unsigned limit);

/* An array for JSON; the caller owns it. */
struct json_object *gpc_libraries_json(const struct gpc_libraries *libraries);

#endif
