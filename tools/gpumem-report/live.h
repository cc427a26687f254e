/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `live`: what processes hold now, refreshed periodically.
 *
 *      recordings --look--> processes, each with its GPUs --draw--> a grid of cells --> terminal, or text
 *      NVML       --look--> other processes on those GPUs
 *
 * A look rereads each recording.  Past and growth come from the recording's own history; only the rates of calls and
 * waits compare two looks.
 *
 * Growth is measured at the floor, the minimum of live bytes in each quarter of the last points, as the smaller of the
 * last two increases of the floor.  So neither the memory of one step nor a program's start counts as growth.
 *
 * Threads     One.
 * Failure     None.
 * Limits      LIVE_MAX_*; a call site keeps the name that it was first seen with.
 */
#ifndef GPC_REPORT_LIVE_H
#define GPC_REPORT_LIVE_H

#include "tools/gpumem-report/report.h"

#define LIVE_MAX_PROCESSES 256
#define LIVE_MAX_GPUS      16 /* of one process */
#define LIVE_MAX_HOLDERS   8
#define LIVE_MAX_POINTS    256
#define LIVE_MAX_NAMES     64 /* of call sites, cached per process */

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
	uint64_t look_ns; /* when the device was last queried */
	struct gpucache_counters sum;
	uint64_t n_calls; /* malloc and free together */
	double calls_a_s; /* < 0: unknown yet */
	double waits_a_s;
	double growth_a_s;   /* bytes; 0: none */
	double seconds_left; /* until memory runs out at this growth; < 0: never */
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

/* Processes on a GPU that have no recording on the screen. */
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

/* Reads what options->target names; ended processes stay.  GPC_EXIT_NOT_FOUND: nothing to read. */
enum gpc_exit live_look(struct live *live);

/* Rounded bytes of the program, in our segments and outside. */
static inline uint64_t live_in_use(const struct live_gpu *gpu)
{
	return gpc_bytes_add(gpu->sum.live_bytes, gpu->sum.direct_bytes);
}

/* Queries NVML for the GPUs of the last look.  find returns its result for one; NULL: none, or not reliable. */
void live_look_at_others(struct live *live);
const struct live_others *live_find_others(const struct live *live, const struct live_gpu *gpu);

/* Growth in bytes a second, as of `now_ns`; 0 for less than four points. */
double live_growth(const uint64_t *times_ns, const uint64_t *bytes, size_t n, uint64_t now_ns);

/* The ink of a cell, by meaning. */
enum live_ink {
	LIVE_PLAIN,
	LIVE_BOLD,
	LIVE_DIM,
	LIVE_ALARM,
	LIVE_HEAD,   /* of the table */
	LIVE_CHOSEN, /* the line of the cursor */
	LIVE_BAR_LIVE,
	LIVE_BAR_PENDING,
	LIVE_BAR_CACHED,
	LIVE_BAR_OTHER,
	LIVE_INK_COUNT,
};

struct live_cell {
	char letter[5]; /* one character, in UTF-8 */
	uint8_t ink;
};

struct live_grid {
	struct live_cell *cells;
	int rows;
	int columns;
	int used; /* rows in use */
};

enum live_order {
	LIVE_BY_MEMORY,
	LIVE_BY_GROWTH,
	LIVE_BY_PID,
	LIVE_ORDER_COUNT,
};

struct live_screen {
	enum live_order order;
	char filter[64]; /* matches programs, ranks, call sites */
	int chosen;      /* line of the table */
	int first;       /* line shown */
	int n_lines;     /* as last drawn */
	bool is_unicode;
	bool is_paused;
	bool is_typing;    /* the filter */
	uint64_t every_ns; /* between two readings; 0: printed once */
};

/* Draws what fits. */
void live_draw(const struct live *live, struct live_screen *screen, struct live_grid *grid);

/* Draws the list of keys. */
void live_draw_help(struct live_grid *grid);

#endif
