/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPU a recorded run needs, from a replay of what it asked for.
 *
 *      recording --> tensors, and what went past PyTorch's cache --> each allocator on smaller and smaller GPUs
 *                '-> contexts, modules and other memory            --> taken off first
 *
 * The smallest GPU is exact to the step in which drivers give memory, 2 MiB, for a program that does on it what it did in
 * the recording.  On another model the contexts differ; they are 2 KiB for each thread that it can have (sim/model.h).
 *
 * Threads     One.
 * Failure     GPC_NO_METADATA; GPC_NOT_FOUND: the run used no GPU.
 * Limits      cuBLAS and PyTorch take smaller workspaces before compute capability 9.0: on one model as it was in the run,
 *             on another up to 60 MiB more than is needed.
 */
#ifndef GPC_REPORT_FIT_H
#define GPC_REPORT_FIT_H

#include "sim/model.h"
#include "tools/gpumem-report/report.h"
#include "tools/replay/steps.h"

#define GPC_FIT_MAX_CACHES 4

struct gpc_fit_cache {
	const char *key;
	const char *words;
	const char *how;         /* what makes a program use it; "": nothing */
	uint64_t reserved_bytes; /* at the peak, on a GPU without limit */
	uint64_t smallest_bytes; /* the whole GPU */
	bool is_on_target;       /* it serves every request there */
};

/* What the answer is asked for. */
struct gpc_fit_target {
	const struct gpc_sim_model *model; /* NULL: a size */
	uint64_t bytes;                    /* 0: none was asked for */
};

struct gpc_fit {
	struct gpucache_device device;
	const struct gpc_sim_model *model; /* of the run; NULL: none of the table */
	struct gpc_steps steps;
	bool has_torch;
	bool is_whole;           /* the recording has every event since the start */
	uint64_t asked_bytes;    /* live at the peak, as asked for */
	uint64_t peak_ns;        /* since the start */
	uint64_t contexts_bytes; /* as they are in the run */
	uint64_t modules_bytes;
	uint64_t others_bytes; /* and what else is held beside the requests */
	unsigned n_caches;
	struct gpc_fit_cache caches[GPC_FIT_MAX_CACHES]; /* the program's own first */
	struct gpc_fit_target target;
	uint64_t
		max_split_mib; /* with which PyTorch's cache serves all on the target; 0: none does, or none is needed */
};

/* "rtx4090" or "24GiB"; false: it is neither. */
bool gpc_fit_read_target(const char *text, struct gpc_fit_target *ret_target);

/* Of the device of -d, else of the busiest.  `ret_fit` holds pointers into the report. */
GPC_MUST_CHECK enum gpc_status gpc_fit_find(
	const struct gpc_report *report, struct gpc_fit *ret_fit);

/* What the cache needs of a GPU of that model; NULL: of one like the run's. */
uint64_t gpc_fit_need(const struct gpc_fit *fit, const struct gpc_fit_cache *cache,
	const struct gpc_sim_model *model);

/* The smallest of the table that is large enough; NULL: none is. */
const struct gpc_sim_model *gpc_fit_smallest_model(
	const struct gpc_fit *fit, const struct gpc_fit_cache *cache);

/* Whether the program, as it is, runs on the target; true if there is none. */
bool gpc_fit_is_good(const struct gpc_fit *fit);

/* The whole answer, and one line of it behind `label`. */
void gpc_fit_print(const struct gpc_report *report, const struct gpc_fit *fit);
void gpc_fit_print_line(
	const struct gpc_paper *paper, const struct gpc_fit *fit, const char *label);
void gpc_fit_json(
	const struct gpc_report *report, const struct gpc_fit *fit, struct json_object *root);

/* Runs options->program, once or, with options->sweep, as often as that says, and answers for it. */
enum gpc_exit gpc_fit_run(struct gpc_report *report);

#endif
