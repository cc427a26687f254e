/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs come next.  Lists: each combination once, on the first GPU, and again on GPUs whose answer is near.  A range: a
 * straight line through what is known says where the largest value is; runs on the GPU itself close in on it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/gpumem-report/sweep/sweep.h"

/* So many runs follow the line; the later ones halve what is left, which a line finds slowly where needs rise in steps. */
#define N_LINE 4u

const struct gpc_sweep_variable *gpc_sweep_range(const struct gpc_sweep *sweep)
{
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (sweep->variables[i].is_range)
			return &sweep->variables[i];
	return NULL;
}

bool gpc_sweep_combination(
	const struct gpc_sweep *sweep, size_t i, const char *ret_values[GPC_SWEEP_MAX_VARIABLES])
{
	for (size_t k = sweep->n_variables; k-- > 0;) {
		const struct gpc_sweep_variable *variable = &sweep->variables[k];

		ret_values[k] = NULL;
		if (variable->is_range)
			continue;
		ret_values[k] = variable->values[i % variable->n_values];
		i /= variable->n_values;
	}
	return i == 0;
}

bool gpc_sweep_run_has(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run,
	const char *const values[GPC_SWEEP_MAX_VARIABLES])
{
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (values[i] && strcmp(values[i], run->values[i]) != 0)
			return false;
	return true;
}

static const struct gpc_sim_model *model_of(const struct gpc_sweep *sweep, size_t gpu)
{
	const struct gpc_sim_model *model = sweep->gpus[gpu].target.model;

	return model ? model : gpc_sim_model_find(GPC_SWEEP_USUAL);
}

bool gpc_sweep_is_own(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run, size_t gpu)
{
	return model_of(sweep, run->gpu) == model_of(sweep, gpu);
}

const struct gpc_sweep_answer *gpc_sweep_find(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu,
	const struct gpc_sweep_run **ret_run)
{
	const struct gpc_sweep_run *best = NULL;

	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];

		if (gpc_sweep_run_has(sweep, run, values) &&
			(!best || gpc_sweep_is_own(sweep, run, gpu)))
			best = run;
	}
	*ret_run = best;
	return best && best->answers[gpu].is_known ? &best->answers[gpu] : NULL;
}

/* ---- the largest value of a range ---- */

struct point {
	uint64_t value;
	uint64_t need;
};

/* What is known about one combination on one GPU. */
struct known {
	uint64_t fits;  /* the largest value that does; 0: none */
	uint64_t fails; /* the smallest value that does not; 0: none */
	bool is_idle;
	unsigned n; /* runs of this GPU */
	/* Of any GPU's runs; value 0: none. */
	struct point first; /* the smallest value */
	struct point below; /* the largest that needs no more than there is */
	struct point above; /* the smallest that needs more */
};

static void add_point(struct known *known, struct point point, uint64_t total)
{
	if (!known->first.value || point.value < known->first.value)
		known->first = point;
	if (point.need <= total && point.value > known->below.value)
		known->below = point;
	if (point.need > total && (!known->above.value || point.value < known->above.value))
		known->above = point;
}

static uint64_t value_of(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run)
{
	return strtoull(run->values[gpc_sweep_range(sweep) - sweep->variables], NULL, 10);
}

static struct known look(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu)
{
	const struct gpc_sweep_variable *range = gpc_sweep_range(sweep);
	const uint64_t total = sweep->gpus[gpu].target.bytes;
	uint64_t asked_by_first = 0;
	uint64_t asked_by_last = 0;
	struct known known = { 0 };

	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];
		const struct gpc_sweep_answer *answer = &run->answers[gpu];
		const uint64_t value = value_of(sweep, run);

		if (!gpc_sweep_run_has(sweep, run, values))
			continue;
		if (answer->is_known)
			add_point(&known, (struct point){ value, answer->need_bytes }, total);
		if (!gpc_sweep_is_own(sweep, run, gpu))
			continue;
		known.n++;
		if (run->is_measured && value == range->from)
			asked_by_first = run->asked_bytes;
		if (run->is_measured && value == range->to)
			asked_by_last = run->asked_bytes;
		if (answer->is_known && answer->fits && value > known.fits)
			known.fits = value;
		if (answer->is_known && !answer->fits && (!known.fails || value < known.fails))
			known.fails = value;
	}
	known.is_idle = asked_by_first && asked_by_first == asked_by_last;
	return known;
}

/* Where a straight line through two of the points reaches `total`, within least .. most. */
static uint64_t guess(const struct known *known, uint64_t total, uint64_t least, uint64_t most)
{
	const struct point *b = known->above.value ? &known->above : &known->below;
	const struct point *a =
		known->above.value && known->below.value ? &known->below : &known->first;
	double at;

	if (!known->first.value)
		return least;
	if (a->value != b->value && a->need == b->need)
		return most;
	if (a->value == b->value)
		at = (double)a->value * ((double)total / (double)(a->need ? a->need : 1));
	else
		at = (double)a->value + ((double)total - (double)a->need) *
						((double)b->value - (double)a->value) /
						((double)b->need - (double)a->need);
	if (!(at > (double)least))
		return least;
	return at < (double)most ? (uint64_t)at : most;
}

/* The smallest value above `fits` with which a run failed for another reason than memory, on whatever GPU; 0: none. */
static uint64_t least_failed(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], uint64_t fits)
{
	uint64_t least = 0;

	for (size_t i = 0; i < sweep->n_runs; i++) {
		const uint64_t value = value_of(sweep, &sweep->runs[i]);

		if (!sweep->runs[i].is_measured &&
			gpc_sweep_run_has(sweep, &sweep->runs[i], values) && value > fits &&
			(!least || value < least))
			least = value;
	}
	return least;
}

struct gpc_sweep_largest gpc_sweep_largest(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu)
{
	const struct gpc_sweep_variable *range = gpc_sweep_range(sweep);
	const struct known known = look(sweep, values, gpu);
	const uint64_t failed = least_failed(sweep, values, known.fits);
	const bool is_by_failure = failed && (!known.fails || failed < known.fails);
	const uint64_t above = is_by_failure ? failed : known.fails;
	const uint64_t least = known.fits ? known.fits + 1 : range->from;
	const uint64_t most = above ? above - 1 : range->to;
	uint64_t next;

	if (known.is_idle)
		return (struct gpc_sweep_largest){ GPC_SWEEP_IDLE, known.fits };
	if (least > most && is_by_failure)
		return (struct gpc_sweep_largest){ GPC_SWEEP_FAILED, known.fits };
	if (least > most)
		return (struct gpc_sweep_largest){ !known.fits               ? GPC_SWEEP_NONE
						   : known.fits == range->to ? GPC_SWEEP_ALL
									     : GPC_SWEEP_FOUND,
			known.fits };
	next = known.n >= N_LINE ? least + (most - least) / 2
				 : guess(&known, sweep->gpus[gpu].target.bytes, least, most);
	return (struct gpc_sweep_largest){ GPC_SWEEP_OPEN, next };
}

/* ---- what comes next ---- */

static void print_run(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu, uint64_t value, FILE *out)
{
	fputs(sweep->gpus[gpu].word, out);
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (values[i])
			fprintf(out, " %s=%s", sweep->variables[i].name, values[i]);
		else
			fprintf(out, " %s=%" PRIu64, sweep->variables[i].name, value);
	fputc('\n', out);
}

/* True if another GPU's run does not tell whether it fits. */
static bool is_near(const struct gpc_sweep *sweep,
	const char *const values[GPC_SWEEP_MAX_VARIABLES], size_t gpu)
{
	const struct gpc_sweep_run *run;
	const struct gpc_sweep_answer *answer = gpc_sweep_find(sweep, values, gpu, &run);

	return answer && !gpc_sweep_is_own(sweep, run, gpu) &&
	       gpc_distance(answer->need_bytes, sweep->gpus[gpu].target.bytes) < GPC_SWEEP_NEAR;
}

static void print_next_of(
	const struct gpc_sweep *sweep, const char *const values[GPC_SWEEP_MAX_VARIABLES], FILE *out)
{
	const struct gpc_sweep_run *run;
	const bool is_first = !gpc_sweep_find(sweep, values, 0, &run) && !run;

	for (size_t gpu = 0; gpu < sweep->n_gpus; gpu++) {
		struct gpc_sweep_largest largest = { 0 };
		bool is_wanted = is_first || is_near(sweep, values, gpu);

		if (gpc_sweep_range(sweep)) {
			largest = gpc_sweep_largest(sweep, values, gpu);
			is_wanted = largest.end == GPC_SWEEP_OPEN;
		}
		if (is_wanted)
			print_run(sweep, values, gpu, largest.value, out);
		/* What it shows tells where to begin on the others. */
		if (is_first)
			return;
	}
}

void gpc_sweep_print_next(const struct gpc_sweep *sweep, FILE *out)
{
	const struct gpc_sweep_variable *range = gpc_sweep_range(sweep);
	const char *values[GPC_SWEEP_MAX_VARIABLES];
	size_t n = 0;
	unsigned each = range ? N_LINE : 1;

	while (gpc_sweep_combination(sweep, n, values)) {
		print_next_of(sweep, values, out);
		n++;
	}
	for (uint64_t left = range ? range->to - range->from : 0; left; left /= 2)
		each++;
	fprintf(out, "runs %zu %zu\n", n, n * sweep->n_gpus * each);
}
