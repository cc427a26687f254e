/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of the processes of a folder, one row of constant size each.
 *
 *      each recording --> a row per GPU that it used, or one of ordinal -1      nothing else is kept
 *
 * Call sites of different processes are the same if their stacks have the same positions in Python code, or the same
 * offsets in the same modules.  Comparing names instead would take a second per rank.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Times of different hosts are compared as their clocks have them.  A row has its GPC_JOB_SITES biggest
 *             call sites.
 */
#ifndef GPC_REPORT_JOB_H
#define GPC_REPORT_JOB_H

#include "tools/gpumem-report/report.h"

#define GPC_JOB_SITES 16

struct gpc_job_site {
	uint64_t key; /* equal for equal stacks in other processes */
	uint64_t bytes;
	uint32_t stack;
};

struct gpc_job_row {
	char *path;
	struct gpucache_header header;
	char program[64]; /* its usual name: "train.py", "-m package.train" */
	enum gpc_run_state state;
	struct gpucache_device device;
	uint64_t live_bytes; /* with memory that no pool serves */
	/* An upper bound: the peak of reserved memory plus the peak of memory that no pool serves. */
	uint64_t peak_bytes;
	uint64_t peak_live_bytes;
	struct gpc_job_site sites[GPC_JOB_SITES]; /* at the peak of live bytes, biggest first */
	unsigned n_sites;
	uint64_t n_ooms;
	uint64_t distance; /* of its peak from the median; set by whoever sorts by it */
	/* The first failure that the program did not recover from; number 0: none. */
	struct {
		uint64_t number;
		uint64_t realtime_ns;
		uint64_t requested;
		uint32_t stack;
		uint8_t verdict;
		uint8_t strength;
	} oom;
};

struct gpc_job {
	struct gpc_job_row *rows;
	size_t n;
	size_t room;
};

/* Adds the rows of report->recording. */
void gpc_job_add(struct gpc_job *job, const struct gpc_report *report);

/* True if the process belongs to a job: it has a rank, or the job has a name. */
bool gpc_job_is_one(const struct gpc_job_row *row);

/* Sorts: the jobs, each by rank, start, pid, path and GPU; then what belongs to none, newest first. */
void gpc_job_sort(struct gpc_job *job);

/* One past the last row of the job, or of what belongs to none, that begins at rows[first]. */
size_t gpc_job_end(const struct gpc_job *job, size_t first);
void gpc_job_fini(struct gpc_job *job);

/* Appends "rank 17 (node3, pid 4711)", or without a rank "pid 4711 on node3". */
void gpc_job_add_who(const struct gpc_job_row *row, struct gpc_text *text);

#endif
