/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of a job compared: which failed first, and which is not like the others, by which call site.
 *
 * Threads     One.
 * Failure     Without memory nobody is the odd one out.
 * Limits      As job.h, whose rows these are.
 */
#ifndef GPC_REPORT_MERGE_H
#define GPC_REPORT_MERGE_H

#include "tools/gpumem-report/job.h"

struct gpc_merge {
	const struct gpc_job_row *first; /* that failed; NULL: none */
	const struct gpc_job_row *odd;   /* NULL: none */
	struct gpc_job_site odd_site; /* by which it differs most; bytes: how much; key 0: none */
	const struct gpc_job_row *odd_site_of; /* whose stack that is */
	bool is_odd_more;                      /* than the others */
	uint64_t median_bytes;                 /* of the peaks of live bytes */
};

struct gpc_merge gpc_merge_compare(const struct gpc_job *job);

static inline uint64_t gpc_merge_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

#endif
