/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU a recorded run needs, from a replay of its requests.
 *
 *      recording --> tensors, and requests that bypass PyTorch's cache --> each allocator on smaller and smaller GPUs
 *                '-> contexts, modules and other memory              --> subtracted first
 *
 * The smallest GPU is exact to 2 MiB, the driver's step, if the program behaves there as it did in the recording.
 * Other models have contexts of other sizes: 2 KiB per resident thread (sim/model.h).
 *
 * Threads     One.
 * Failure     GPC_NOT_FOUND: the run used no GPU.
 * Limits      Assumes workspaces of cuBLAS and PyTorch as in the run.  Both take smaller ones before compute capability
 *             9.0, so the answer for another model may be up to 60 MiB too high.
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
	const char *how;         /* the setting that selects it; "": the default */
	uint64_t reserved_bytes; /* at the peak, on a GPU without limit */
	uint64_t smallest_bytes; /* the whole GPU */
	bool is_on_target;       /* serves every request on the target */
};

/* The question. */
struct gpc_fit_target {
	const struct gpc_sim_model *model; /* NULL: only a size was given */
	uint64_t bytes;                    /* 0: no target */
};

struct gpc_fit {
	struct gpucache_device device;
	const struct gpc_sim_model *model; /* of the run; NULL: not in the table */
	struct gpc_steps steps;
	bool has_torch;
	bool is_whole;           /* the recording has every event since the start */
	uint64_t asked_bytes;    /* live at the peak, as requested */
	uint64_t peak_ns;        /* since the start */
	uint64_t contexts_bytes; /* as in the run */
	uint64_t modules_bytes;
	uint64_t others_bytes; /* memory that is neither requested nor of contexts or modules */
	unsigned n_caches;
	struct gpc_fit_cache caches[GPC_FIT_MAX_CACHES]; /* the program's own first */
	struct gpc_fit_target target;
	/* The largest max_split_size with which PyTorch's cache fits on the target; 0: none does, or none is needed. */
	uint64_t max_split_mib;
};

/* Parses "rtx4090" or "24GiB"; false if it is neither. */
bool gpc_fit_read_target(const char *text, struct gpc_fit_target *ret_target);

/* For the device of -d, else the busiest.  `ret_fit` holds pointers into the report. */
GPC_MUST_CHECK enum gpc_status gpc_fit_find(
	const struct gpc_report *report, struct gpc_fit *ret_fit);

/* The bytes that the cache needs on a GPU of `model`; NULL: on one like the run's. */
uint64_t gpc_fit_need(const struct gpc_fit *fit, const struct gpc_fit_cache *cache,
	const struct gpc_sim_model *model);

/* The smallest model of the table that is large enough; NULL if none is. */
const struct gpc_sim_model *gpc_fit_smallest_model(
	const struct gpc_fit *fit, const struct gpc_fit_cache *cache);

/* True if the program runs on the target unchanged, or if there is no target. */
bool gpc_fit_is_good(const struct gpc_fit *fit);

/* Prints the whole answer, or one line of it after `label`. */
void gpc_fit_print(const struct gpc_report *report, const struct gpc_fit *fit);
void gpc_fit_print_line(
	const struct gpc_paper *paper, const struct gpc_fit *fit, const char *label);
void gpc_fit_json(
	const struct gpc_report *report, const struct gpc_fit *fit, struct json_object *root);

/* Runs options->program, once or as often as options->sweep requires, and prints the answer. */
enum gpc_exit gpc_fit_run(struct gpc_report *report);

#endif
