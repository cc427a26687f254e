/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that was run with several values of its variables, and on which GPUs it fits with each.
 *
 *	FOLDER/plan      on=l4,a100-40           the GPUs; no such line: none
 *	                 sweep=BATCH=8,16,32     a variable: a list of values,
 *	                 sweep=SEQ=1..4096       or a range, of which the largest that fits is wanted; at most one
 *	                 sized=MEMORY            instead: the GPU's size is the variable, in bytes (sized.h)
 *	                 command=train {BATCH}   what is run
 *	FOLDER/N/trial   gpu=l4                  run N: the GPU that was simulated, "-": the usual one; without its limit
 *	                 set=BATCH=8             a value
 *	                 ended=0                 stopped, interrupted, late, or the program's exit status
 *	FOLDER/N/said    the last line that the program printed
 *	FOLDER/N/GPU.json  what `fit --on=GPU` says of it; -.json without --on
 *
 * gpucache-run writes the folder, and asks gpumem-report for the --next runs until there are none.
 *
 * Invariants  1 The largest value of a range is known from two runs that simulated the GPU itself: one that fits, and one
 *               with the next value that does not, unless it is the last of the range.
 * Threads     One.
 * Failure     A message, and an exit code.
 * Limits      GPC_SWEEP_MAX_*.
 */
#ifndef GPC_REPORT_SWEEP_H
#define GPC_REPORT_SWEEP_H

#include "tools/gpumem-report/fit/smallest_gpu.h"

#define GPC_SWEEP_MAX_VARIABLES 4
#define GPC_SWEEP_MAX_GPUS      12

/* What is simulated where a size is given, or nothing (tools/gpucache-run). */
#define GPC_SWEEP_USUAL "h100"

/* An answer of another GPU's run that is nearer than this is asked of the GPU itself: workspaces differ (smallest_gpu.h). */
#define GPC_SWEEP_NEAR (UINT64_C(64) << 20)

struct gpc_sweep_variable {
	char *name;
	char **values;
	size_t n_values;
	bool is_range;
	uint64_t from;
	uint64_t to;
};

struct gpc_sweep_gpu {
	char *word; /* of --on; "-": none was given */
	struct gpc_fit_target target;
};

/* What one run says about one GPU. */
struct gpc_sweep_answer {
	bool is_known;
	bool fits;
	uint64_t need_bytes;
	char *refused_at; /* the line of the first request that is refused; NULL: it fits, or it is unknown */
};

struct gpc_sweep_site {
	char *where;
	uint64_t bytes;
};

struct gpc_sweep_run {
	unsigned number;
	size_t gpu; /* that was simulated */
	char *values[GPC_SWEEP_MAX_VARIABLES];
	char *ended;
	char *said;
	bool is_measured; /* it took memory, and did not fail for another reason */
	bool is_cut; /* it wanted more than it got on a GPU without limit, or outgrew every GPU: it needs more than its bytes */
	uint64_t asked_bytes;
	char *smallest_gpu; /* of the table that it fits on; NULL: none */
	struct gpc_sweep_answer answers[GPC_SWEEP_MAX_GPUS];
	struct gpc_sweep_site *sites; /* at the peak */
	size_t n_sites;
};

struct gpc_sweep {
	struct gpc_sweep_variable variables[GPC_SWEEP_MAX_VARIABLES];
	size_t n_variables;
	struct gpc_sweep_gpu gpus[GPC_SWEEP_MAX_GPUS];
	size_t n_gpus; /* at least 1 */
	bool is_sized;
	char *command; /* that was run, with {NAME} for a value; NULL: unknown */
	struct gpc_sweep_run *runs;
	size_t n_runs;
};

/* Reads plan and runs; false after a message. */
bool gpc_sweep_read(struct gpc_sweep *ret_sweep, const char *folder);
void gpc_sweep_fini(struct gpc_sweep *sweep);

/* The variable with a range; NULL: there is none. */
const struct gpc_sweep_variable *gpc_sweep_range(const struct gpc_sweep *sweep);

/* Combination i of the values of all lists, one for each variable, NULL for the range; false after the last. */
bool gpc_sweep_combination(
	const struct gpc_sweep *sweep, size_t i, const char *ret_values[GPC_SWEEP_MAX_VARIABLES]);

/* True if the run had these values; NULL is any. */
bool gpc_sweep_run_has(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run,
	const char *const values[GPC_SWEEP_MAX_VARIABLES]);

/* True if the run simulated a GPU of that model. */
bool gpc_sweep_is_own(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run, size_t gpu);

/* The best answer about these values on a GPU: that of its own run, else another's.  *ret_run may be NULL in the answer. */
const struct gpc_sweep_answer *gpc_sweep_find(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu,
	const struct gpc_sweep_run **ret_run);

enum gpc_sweep_end {
	GPC_SWEEP_OPEN,   /* `value` is to be tried next */
	GPC_SWEEP_FOUND,  /* `value` is the largest that fits */
	GPC_SWEEP_ALL,    /* `value` fits, and is the last of the range */
	GPC_SWEEP_NONE,   /* not even the first fits */
	GPC_SWEEP_FAILED, /* the next one failed for another reason: `value` fits, 0: nothing does */
	GPC_SWEEP_IDLE,   /* the first and the last value asked for the same bytes */
};

struct gpc_sweep_largest {
	enum gpc_sweep_end end;
	uint64_t value;
};

/* What is known of the largest value of the range with these values of the others. */
struct gpc_sweep_largest gpc_sweep_largest(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu);

/* Prints the next runs, "GPU NAME=VALUE ..." each, and "runs N M": those that are sure to come, and the most. */
void gpc_sweep_print_next(const struct gpc_sweep *sweep, FILE *out);

/* Adds the section GROWTH: the lines that ask for more with a variable, and by which law. */
void gpc_sweep_show_growth(const struct gpc_sweep *sweep, struct gpc_document *doc);

#endif
