/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the GPUs of a job: which failed first, and which is the odd one out, by which call site.
 *
 * Threads     One.
 * Failure     Out of memory: no odd one out.
 * Limits      Those of job.h.
 */
#ifndef GPC_REPORT_MERGE_H
#define GPC_REPORT_MERGE_H

#include "tools/gpumem-report/job.h"

struct gpc_merge {
	const struct gpc_job_row *first; /* that failed; NULL: none */
	const struct gpc_job_row *odd;   /* NULL: none */
	struct gpc_job_site odd_site;    /* with the largest difference, in bytes; key 0: none */
	const struct gpc_job_row *odd_site_of; /* the row of its stack */
	bool is_odd_more;                      /* odd is above the median */
	uint64_t median_bytes;                 /* of the peaks of live bytes */
};

struct gpc_merge gpc_merge_compare(const struct gpc_job *job);

static inline uint64_t gpc_merge_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

#endif
