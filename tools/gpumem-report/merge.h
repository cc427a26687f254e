/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many ranks side by side: which failed first, and which is not like the others.
 *
 *      each recording --> a row of constant size          nothing else is kept of it
 *      the rows       --> order, median, first failure, the odd one out
 *      its recording, opened once more --> the name of the call site that makes the difference
 *
 * Call sites of different processes are the same where their stacks are: by offsets in modules and places in Python
 * code, for to name them all would take a second a rank.
 *
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      The clocks of several hosts are taken as they are.  GPC_MERGE_SITES call sites a rank.
 */
#ifndef GPC_REPORT_MERGE_H
#define GPC_REPORT_MERGE_H

#include "tools/gpumem-report/report.h"

#define GPC_MERGE_SITES 16

struct gpc_merge_site {
	uint64_t key; /* the same for the same stack in another process */
	uint64_t bytes;
	uint32_t stack;
};

struct gpc_merge_rank {
	char *path;
	char host[64];
	int32_t rank; /* -1: the launcher named none */
	int32_t world_size;
	uint32_t pid;
	enum gpc_run_state state;
	int32_t device; /* with the highest peak; -1: it used none */
	uint64_t peak_bytes;
	uint64_t n_ooms;
	/* The first that it did not recover from; number 0: none. */
	struct {
		uint64_t number;
		uint64_t realtime_ns;
		uint64_t requested;
		uint32_t stack;
		int32_t device;
		uint8_t verdict;
		uint8_t strength;
	} oom;
	struct gpc_merge_site sites[GPC_MERGE_SITES]; /* at the peak, biggest first */
	unsigned n_sites;
};

struct gpc_merge {
	struct gpc_merge_rank
		*ranks; /* by rank, then host and pid, once gpc_merge_sort was called */
	size_t n;
	size_t room;
	size_t n_unused;                /* recordings of processes that used no GPU, left out */
	uint64_t median_bytes;          /* of the peaks; this and below by gpc_merge_sort */
	size_t first;                   /* that failed; n: none */
	size_t odd;                     /* n: none */
	struct gpc_merge_site odd_site; /* by which it differs most; bytes: how much; key 0: none */
	size_t odd_site_of;             /* whose stack that is */
	bool is_odd_more;               /* than the others */
};

/* Takes what is kept of report->recording. */
GPC_MUST_CHECK enum gpc_status gpc_merge_add(
	struct gpc_merge *merge, const struct gpc_report *report);

/* Orders and compares. */
void gpc_merge_sort(struct gpc_merge *merge);
void gpc_merge_fini(struct gpc_merge *merge);

#endif
