/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that sizes itself by what is free, as vLLM and JAX do: the runs of a sweep over the GPU's size say which lines
 * take more of a larger GPU (the cache), what is left for them on each GPU, and from which size on the program runs.
 *
 *	run 1     1 TiB                        the run of --fit
 *	run 2     half of it                   what it takes must differ by GPC_SIZED_PART of the difference, or it does not
 *	                                       size itself, and there are no more runs
 *	a run     on each GPU of --on          at its size
 *	the rest  of the first GPU             close in on the smallest size
 *
 * Invariants  1 Every size that is said to run has run, and every one that is said to be too small has failed.
 * Threads     One.
 * Failure     A message, and an exit code.
 * Limits      GPC_SIZED_MAX_RUNS; the smallest size is known to 1/GPC_SIZED_EXACT of it, or 32 MiB.
 */
#ifndef GPC_REPORT_SIZED_H
#define GPC_REPORT_SIZED_H

#include "tools/gpumem-report/sweep/sweep.h"

#define GPC_SIZED_PART     16
#define GPC_SIZED_EXACT    32
#define GPC_SIZED_MAX_RUNS 20

/* True if the program took so much of a GPU of this size that a second run may show that it sizes itself. */
static inline bool gpc_sized_is_suspect(uint64_t asked_bytes, uint64_t total_bytes)
{
	return total_bytes && asked_bytes >= total_bytes / 8;
}

/* Prints what to run next (options->next), or adds the answer to the report. */
enum gpc_exit gpc_sized_answer(const struct gpc_sweep *sweep, struct gpc_report *report);

#endif
