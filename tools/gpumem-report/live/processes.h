/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `live`: what processes hold now, read again and again.
 *
 *      recordings --look--> processes, each with its GPUs --show--> a document --> terminal, text, or JSON
 *      NVML       --look--> other processes on those GPUs
 *
 * A look reads each recording whole.  The past and growth come from the history in the recording; the rates of calls
 * and waits are differences of counters between two looks.
 *
 * The last points of the history are divided into four quarters of equal time.  Each of the last three has a floor, the
 * least live bytes in it.  Growth is the smaller of the two increases from floor to floor: the memory that a step takes
 * and returns does not raise a floor, and what a program takes once, at its start, raises only one.
 *
 * Threads     One.
 * Failure     None.
 * Limits      LIVE_MAX_*.  While a stack is in the cache of names, it keeps its name.
 */
#ifndef GPC_REPORT_LIVE_H
#define GPC_REPORT_LIVE_H

#include "tools/gpumem-report/report.h"

#define LIVE_MAX_PROCESSES 256
#define LIVE_MAX_GPUS      16 /* of one process */
#define LIVE_MAX_HOLDERS   8
#define LIVE_MAX_POINTS    256
#define LIVE_MAX_NAMES     64 /* in the cache of one process */

struct live_holder {
	uint32_t stack;
	uint32_t kind; /* of a context or a module, else 0 */
	uint64_t bytes;
	uint64_t n_blocks;
	const char *where;
};

/* A GPU of one process. */
struct live_gpu {
	int32_t ordinal;
	char name[64];
	char uuid[48];
	bool has_balance;
	struct gpucache_balance balance;
	uint64_t look_ns; /* of struct gpucache_device: when the library last queried the device */
	struct gpucache_counters sum;
	uint64_t n_calls; /* malloc and free together */
	double calls_a_s; /* < 0: unknown yet */
	double waits_a_s;
	double growth_a_s;   /* bytes a second; 0: no growth */
	double seconds_left; /* until memory runs out at this growth; < 0: unknown, or no growth */
	unsigned n_points;
	uint64_t points[LIVE_MAX_POINTS];             /* live bytes, oldest first */
	struct live_holder holders[LIVE_MAX_HOLDERS]; /* biggest first */
	unsigned n_holders;
};

struct live_name {
	uint32_t stack;
	char *where;
};

struct live_process {
	char *path;
	struct gpucache_header header;
	enum gpc_run_state state;
	bool is_seen; /* in this look */
	uint64_t look_ns;
	struct live_gpu gpus[LIVE_MAX_GPUS];
	unsigned n_gpus;
	struct live_name names[LIVE_MAX_NAMES];
	unsigned n_names;
};

/* Processes on a GPU that are not among live.processes, as NVML has them. */
struct live_others {
	char uuid[48];
	struct gpucache_neighbour rows[GPUCACHE_MAX_NEIGHBOURS]; /* biggest first */
	unsigned n;
};

struct live {
	const struct gpc_report *report;
	struct live_process *processes;
	unsigned n_processes;
	struct live_others others[LIVE_MAX_GPUS];
	unsigned n_others;
	uint64_t now_ns; /* CLOCK_MONOTONIC */
};

void live_init(struct live *live, const struct gpc_report *report);
void live_fini(struct live *live);

/* Reads what options->target names; processes that ended stay in the list.  GPC_EXIT_NOT_FOUND: no such file or pid. */
enum gpc_exit live_look(struct live *live);

/* The bytes that the program holds: blocks, as rounded to size classes, and memory that no pool serves. */
static inline uint64_t live_in_use(const struct live_gpu *gpu)
{
	return gpc_bytes_add(gpu->sum.live_bytes, gpu->sum.direct_bytes);
}

/*
 * live_look_at_others() queries NVML about the GPUs of the last look, and live_find_others() returns its answer for one
 * of them; NULL: NVML does not answer, or cannot tell our processes from others.
 */
void live_look_at_others(struct live *live);
const struct live_others *live_find_others(const struct live *live, const struct live_gpu *gpu);

enum live_order {
	LIVE_BY_MEMORY,
	LIVE_BY_GROWTH,
	LIVE_BY_PID,
	LIVE_ORDER_COUNT,
};

struct live_screen {
	enum live_order order;
	char filter[64]; /* matches programs, ranks, call sites */
	int chosen;      /* the line of the cursor, from 0 */
	int first;       /* the uppermost line on the screen */
	int n_lines;     /* of the table, at the last live_show() */
	bool is_unicode;
	bool is_paused;
	bool is_typing;    /* keys go into the filter */
	uint64_t every_ns; /* between two looks; 0: there is only one, without keys */
};

/*
 * Makes the screen as a document of at most `rows` lines; sets n_lines, and keeps `chosen` and `first` within the
 * table.
 */
void live_show(
	struct gpc_document *doc, const struct live *live, struct live_screen *screen, int rows);

/* Makes the list of keys. */
void live_show_help(struct gpc_document *doc);

#endif
