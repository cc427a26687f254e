/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of a job's processes, one row of constant size each: `ranks` lists them, `merge` compares them.
 *
 *      each recording --> a row per GPU that it used      nothing else is kept
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
	char job[64];
	char host[64];
	char command[256];
	int32_t rank; /* -1: the launcher set none */
	int32_t world_size;
	uint32_t pid;
	uint64_t start_realtime_ns;
	enum gpc_run_state state;
	struct gpucache_device device;
	uint64_t live_bytes; /* with memory that no pool serves */
	/* An upper bound: the peak of reserved memory plus the peak of memory that no pool serves. */
	uint64_t peak_bytes;
	uint64_t peak_live_bytes;
	struct gpc_job_site sites[GPC_JOB_SITES]; /* at the peak of live bytes, biggest first */
	unsigned n_sites;
	uint64_t n_ooms;
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
	size_t n_processes;
	size_t n_unused; /* processes without a row: they used no GPU */
};

/* Adds the rows of report->recording. */
void gpc_job_add(struct gpc_job *job, const struct gpc_report *report);

/* Sorts by job, rank, start, pid, path and GPU. */
void gpc_job_sort(struct gpc_job *job);
void gpc_job_fini(struct gpc_job *job);

/* Returns the row with the earliest failure that its program did not recover from, or NULL. */
const struct gpc_job_row *gpc_job_first(const struct gpc_job_row *rows, size_t n);

/* Returns the lower median.  Sorts `numbers`. */
uint64_t gpc_job_median(uint64_t *numbers, size_t n);

/* Appends "rank 17 (node3, pid 4711)", or without a rank "pid 4711 on node3". */
void gpc_job_add_who(const struct gpc_job_row *row, struct gpc_text *text);

struct json_object *gpc_job_row_json(const struct gpc_job_row *row);

#endif
