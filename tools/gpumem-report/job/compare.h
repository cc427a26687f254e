/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader of a job's table looks for: the rank that failed first, and the odd one out with the call site that
 * makes it odd.
 *
 * The odd one out is the row whose peak is farthest from the median, by more than 32 MiB and more than a twentieth of
 * the median; the site is the one whose bytes are farthest from that site's own median.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Sorts the rows once per site of one row, at most GPC_JOB_SITES times.
 */
#ifndef GPC_REPORT_COMPARE_H
#define GPC_REPORT_COMPARE_H

#include "tools/gpumem-report/job/ranks_of_job.h"

struct gpc_findings {
	const struct gpc_job_row *first; /* the first row that failed; NULL: none */
	const struct gpc_job_row *odd;   /* the odd one out; NULL: none */
	struct gpc_job_site odd_site;    /* `bytes`: its distance from its median; key 0: none */
	const struct gpc_job_row *odd_site_of; /* whose recording has the stack of odd_site */
	bool is_odd_more;                      /* odd is above the median */
	uint64_t median_bytes;                 /* of the peaks of live bytes */
};

struct gpc_findings gpc_job_compare(const struct gpc_job_row *rows, size_t n);

#endif
