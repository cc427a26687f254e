/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU a recorded run needs, from a replay of its requests.
 *
 *      recording --> tensors, and requests that bypass PyTorch's cache --> replayed by each allocator of caches.def
 *                '-> contexts, modules and other memory              --> replayed as requests to the driver
 *
 * A search over the GPU's size finds the smallest one that serves all requests.  It is exact to 2 MiB, in steps of
 * which the driver allocates, if the program makes the same requests there.  A context takes 2 KiB per thread that the
 * model can run at a time (sim/gpu/model.h), so it has another size on another model.
 *
 * Threads     One.
 * Failure     GPC_NOT_FOUND: the run used no GPU.
 * Limits      Assumes that cuBLAS and PyTorch take workspaces of the same size on the other model.  Below compute
 *             capability 9.0 both take smaller ones, so the answer may be up to 60 MiB too high there.
 */
#ifndef GPC_REPORT_FIT_H
#define GPC_REPORT_FIT_H

#include "sim/gpu/model.h"
#include "tools/gpumem-report/report.h"
#include "tools/replay/steps.h"

#define GPC_FIT_MAX_CACHES 4

struct gpc_fit_cache {
	const char *key;
	const char *words;
	const char *how;         /* the setting that selects this allocator; "": the default */
	uint64_t reserved_bytes; /* at the peak, on a GPU of unlimited size */
	uint64_t smallest_bytes; /* of the smallest GPU on which all requests succeed */
	bool is_on_target;       /* serves every request on the target */
};

/* The GPU of --on. */
struct gpc_fit_target {
	const struct gpc_sim_model *model; /* NULL: only a size was given */
	uint64_t bytes;                    /* 0: no target */
};

struct gpc_fit {
	struct gpucache_device device;
	struct gpc_steps steps;
	bool has_torch;          /* PyTorch's tensors */
	bool has_xla;            /* JAX's arrays */
	bool is_whole;           /* the recording has every event since the start */
	bool is_growing;         /* steps.growth, when it was ended or failed: more was to come */
	bool is_outgrown;        /* and gpc_fit_outgrows(): no cache is replayed */
	uint64_t asked_bytes;    /* live at the peak, as requested */
	uint64_t peak_ns;        /* since the start */
	uint64_t contexts_bytes; /* as in the run */
	uint64_t modules_bytes;
	uint64_t others_bytes; /* other memory of kinds that the cache never serves */
	unsigned n_caches;
	struct gpc_fit_cache caches[GPC_FIT_MAX_CACHES]; /* the program's own first */
	struct gpc_fit_target target;
	/* What the run did not survive: it asked for no more; number 0: none. */
	struct gpucache_oom failure;
	uint64_t
		more_than_bytes; /* what it did not survive with: what a GPU gave it; 0: it did not fail */
	uint32_t
		refused_stack; /* the first request that PyTorch's cache, or the driver, refuses on the target; 0: none */
	/* The largest of 512, 256, ... 32 MiB as max_split_size with which PyTorch's cache fits on the target; 0: none. */
	uint64_t max_split_mib;
};

/* Parses "rtx4090" or "24GiB"; false if it is neither. */
bool gpc_fit_read_target(const char *text, struct gpc_fit_target *ret_target);

/* True if a program has more live at a time than any GPU of the table and the target have, and grows. */
bool gpc_fit_outgrows(const struct gpc_trace *trace, const struct gpc_steps *steps,
	const struct gpc_fit_target *target);

/*
 * Computes the fit of one GPU of the recording: that of -d, else the one with most events.  Also fails as
 * gpc_run_smallest() does.
 */
GPC_MUST_CHECK enum gpc_status gpc_fit_find(
	const struct gpc_report *report, struct gpc_fit *ret_fit);

/* The smallest memory of a GPU of `model`, NULL: of the run's own model, that serves all requests with that cache. */
uint64_t gpc_fit_need(const struct gpc_fit *fit, const struct gpc_fit_cache *cache,
	const struct gpc_sim_model *model);

/* The model with the least memory on which the run fits with that cache (sim/gpu/model.h); NULL: it fits on none. */
const struct gpc_sim_model *gpc_fit_smallest_model(
	const struct gpc_fit *fit, const struct gpc_fit_cache *cache);

/*
 * True if the run fits on the target with the program's own allocator, or if there is no target.  Of a run that ran out of
 * memory the requests that were served may fit, but those that it never made are not known: what is known is that it does not
 * fit where they do not, and where there is no more than it had.
 */
bool gpc_fit_is_good(const struct gpc_fit *fit);
bool gpc_fit_is_known(const struct gpc_fit *fit);

/* Adds the whole answer to the document. */
void gpc_fit_show(const struct gpc_report *report, const struct gpc_fit *fit);

/* Complains that no process, or the program of --ended, took memory of a GPU. */
void gpc_fit_complain_unused(const struct gpc_report *report);

#endif
