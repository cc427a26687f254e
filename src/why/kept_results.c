/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the live tensors of each call path into the model.  A pass adds at least one tensor to each path, so the path
 * with fewest tensors bounds the number of passes.  A site that freed most of its tensors belongs to the running pass,
 * and is ignored.  The allocations of inputs and gradients are a second bound of the number of passes.  Quadratic in
 * the holders of one failure, of which there are at most GPUCACHE_MAX_OOM_HOLDERS.
 */
#include "why/kept_results.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "why/purposes.h"

/* Fewer passes may all be needed by one step: the micro-batches of a pipeline, the views of one image. */
#define MANY_PASSES 8

/* A path with less than 1/NEGLIGIBLE_PART of all bytes is ignored: it may be a table that a model creates once. */
#define NEGLIGIBLE_PART 4096

/* True if `bytes` are at least half of the bytes in tensors, and at least the missing ones. */
static bool is_reason(const struct gpucache_oom *oom, uint64_t bytes)
{
	return bytes >= oom->short_by && bytes >= oom->torch.allocated / 2;
}

struct path {
	uint64_t hash;
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t n_made;
	uint64_t last_ns;
	bool is_in_module; /* leads into a model */
};

struct paths {
	struct path rows[GPUCACHE_MAX_OOM_HOLDERS];
	size_t n;
	uint64_t bytes;    /* the sum over rows */
	uint64_t n_inputs; /* that are kept; 0: they tell nothing */
	/* Of the sites in a model that freed most of their tensors, the one with most: their number, the time of the first. */
	uint64_t n_passed;
	uint64_t passed_first_ns;
};

static bool is_module_call(const struct gpc_frame *frame)
{
	return frame->is_library && strstr(frame->file, "/nn/modules/module.py") &&
	       strstr(frame->function, "call_impl");
}

/*
 * The path of a stack: the program's Python frames, hashed from the outermost to the first one that a model's call
 * runs; without a model on the stack, all of them.
 */
static struct path path_of(const struct gpc_evidence *evidence, uint32_t id)
{
	const struct gpc_stack_frames *stack = gpc_evidence_frames(evidence, id);
	struct path path = { .hash = GPC_HASH_START };
	bool is_told = false;

	for (size_t i = stack ? stack->n : 0; i-- > 0 && !is_told;) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (!frame->is_python || !frame->file || !frame->function)
			continue;
		if (is_module_call(frame))
			path.is_in_module = true;
		if (frame->is_library)
			continue;
		path.hash = gpc_frame_hash(frame, path.hash);
		is_told = path.is_in_module;
	}
	return path;
}

static void add_path(struct paths *paths, const struct path *path)
{
	size_t i = 0;

	while (i < paths->n && paths->rows[i].hash != path->hash)
		i++;
	if (i == paths->n)
		paths->rows[paths->n++] = (struct path){ .hash = path->hash };
	paths->rows[i].bytes = gpc_bytes_add(paths->rows[i].bytes, path->bytes);
	paths->rows[i].n_blocks += path->n_blocks;
	paths->rows[i].n_made += path->n_made;
	paths->rows[i].last_ns = gpc_larger(paths->rows[i].last_ns, path->last_ns);
	paths->rows[i].is_in_module |= path->is_in_module;
	paths->bytes = gpc_bytes_add(paths->bytes, path->bytes);
}

/* The fewest tensors on any path into a model; 0 if all paths into models together hold less than half of the bytes. */
static uint64_t count_passes(const struct paths *paths)
{
	uint64_t least = UINT64_MAX;
	uint64_t in_modules = 0;

	for (size_t i = 0; i < paths->n; i++) {
		const struct path *path = &paths->rows[i];

		if (!path->is_in_module || path->bytes < paths->bytes / NEGLIGIBLE_PART)
			continue;
		in_modules += path->bytes;
		least = gpc_smaller(least, path->n_blocks);
	}
	return in_modules && in_modules >= paths->bytes / 2 ? least : 0;
}

/*
 * For tensors that the program itself computes from a model's output (softmax, cat): the number of tensors on the path
 * with more than half of the bytes.  Returns 0 unless nearly all tensors of that path are still live, and the model ran
 * at least as often, and before the last of them was made.
 */
static uint64_t count_results(const struct paths *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		const struct path *path = &paths->rows[i];

		if (!path->is_in_module && path->bytes > paths->bytes / 2 &&
			path->n_blocks >= path->n_made - path->n_made / 8 &&
			path->n_blocks <= paths->n_passed && path->last_ns > paths->passed_first_ns)
			return path->n_blocks;
	}
	return 0;
}

/* The innermost frame of the program that calls a model and is called by none; NULL: there is none. */
static const struct gpc_frame *caller_of_model(const struct gpc_stack_frames *stack)
{
	const struct gpc_frame *caller = NULL;

	for (size_t i = stack ? stack->n : 0; i-- > 0;) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (!frame->is_python || !frame->file || !frame->function)
			continue;
		if (is_module_call(frame))
			return caller;
		if (!frame->is_library)
			caller = frame;
	}
	return NULL;
}

/*
 * True if the site is a line beside the call of the model, in the same function, that has freed nearly all it made, or
 * makes what autograd does not record: it runs after each pass, as the choice of the next token does.  What layers make
 * within a pass is recorded and kept.
 */
static bool is_beside_model(const struct gpc_evidence *evidence, const struct gpucache_site *site,
	enum gpc_purpose purpose, const struct gpc_frame *caller)
{
	const struct gpc_stack_frames *stack = gpc_evidence_frames(evidence, site->stack);
	const struct gpc_frame *frame =
		stack && stack->site >= 0 ? &stack->frames[stack->site] : NULL;

	/* An optimizer makes its state once. */
	return caller && purpose != GPC_PURPOSE_OPTIMIZER && frame && frame->is_python &&
	       !caller_of_model(stack) && frame->file && frame->function &&
	       strcmp(frame->file, caller->file) == 0 &&
	       strcmp(frame->function, caller->function) == 0 &&
	       (purpose == GPC_PURPOSE_OTHER || site->live_blocks <= site->total_blocks / 8);
}

/*
 * An upper bound of the passes since `since_ns` through the model that `stack` leads into: the fewest allocations of any
 * site that makes inputs or gradients, which every pass needs, or stands beside the call of the model.  Sites with
 * fewer than MANY_PASSES, and those of memory that PyTorch cuts into tensors, are ignored.  0: there is none, so what looks like passes may be a loop within one pass (layers
 * in a list, words of a text).
 */
static uint64_t count_steps(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	uint32_t stack, uint64_t since_ns)
{
	const struct gpc_frame *caller = caller_of_model(gpc_evidence_frames(evidence, stack));
	struct gpucache_site site;
	uint64_t least = UINT64_MAX;

	for (uint64_t i = 0; i < evidence->n_sites; i++) {
		enum gpc_purpose purpose;

		if (!gpc_evidence_site(evidence, i, oom->device, &site) ||
			site.last_ns <= since_ns || site.total_blocks < MANY_PASSES ||
			(site.flags & GPUCACHE_SITE_ARENA))
			continue;
		purpose = gpc_purpose_of(gpc_evidence_frames(evidence, site.stack));
		if (purpose == GPC_PURPOSE_GRADIENTS || purpose == GPC_PURPOSE_INPUTS ||
			is_beside_model(evidence, &site, purpose, caller))
			least = gpc_smaller(least, site.total_blocks);
	}
	return least == UINT64_MAX ? 0 : least;
}

bool gpc_kept_most(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder, uint64_t *ret_first_ns)
{
	struct gpucache_site site;

	if (!gpc_evidence_find_site(evidence, oom->device, holder->stack, &site))
		return false;
	*ret_first_ns = site.first_ns;
	return holder->bytes > site.total_bytes / 2;
}

/* True if a site that freed half of its tensors, as several layers share it, keeps one for each input that is kept. */
static bool is_kept_with_inputs(const struct paths *paths, uint64_t n_blocks)
{
	return paths->n_inputs >= MANY_PASSES && n_blocks <= paths->n_inputs &&
	       n_blocks >= paths->n_inputs - paths->n_inputs / 8;
}

/* The most inputs that one site made and keeps. */
static uint64_t count_inputs(const struct gpc_evidence *evidence, const struct gpucache_oom *oom)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];
		struct gpucache_site site;

		if (gpc_purpose_of(gpc_evidence_frames(evidence, holder->stack)) ==
				GPC_PURPOSE_INPUTS &&
			gpc_evidence_find_site(evidence, oom->device, holder->stack, &site) &&
			holder->n_blocks >= site.total_blocks - site.total_blocks / 8)
			most = gpc_larger(most, holder->n_blocks);
	}
	return most;
}

/* Adds a holder to its path.  False: a site that freed half of its tensors or more is part of the running pass, and no path. */
static bool add_holder(struct paths *paths, const struct gpc_evidence *evidence,
	const struct gpucache_oom *oom, const struct gpucache_holder *holder)
{
	struct gpucache_site site = { .total_blocks = holder->n_blocks };
	struct path path = path_of(evidence, holder->stack);

	(void)gpc_evidence_find_site(evidence, oom->device, holder->stack, &site);
	path.bytes = holder->bytes;
	path.n_blocks = holder->n_blocks;
	path.n_made = site.total_blocks;
	path.last_ns = site.last_ns;
	if (path.n_blocks > path.n_made / 2 || is_kept_with_inputs(paths, path.n_blocks)) {
		add_path(paths, &path);
		return true;
	}
	if (path.is_in_module && path.n_made > paths->n_passed) {
		paths->n_passed = path.n_made;
		paths->passed_first_ns = site.first_ns;
	}
	return false;
}

/* Since when nothing of what grows was freed, if it is memory for this purpose: *ret_first_ns. */
static bool has_grown_whole(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	enum gpc_purpose purpose, uint64_t *ret_first_ns)
{
	const struct gpucache_holder *growing = gpc_holder_of(oom, oom->growth_stack);

	return oom->torch.requested && oom->growth_stack && growing &&
	       gpc_purpose_of(gpc_evidence_frames(evidence, oom->growth_stack)) == purpose &&
	       gpc_kept_most(evidence, oom, growing, ret_first_ns);
}

bool gpc_kept_may_be_one_pass(const struct gpc_evidence *evidence, const struct gpucache_oom *oom)
{
	uint64_t first_ns;

	return has_grown_whole(evidence, oom, GPC_PURPOSE_ACTIVATIONS, &first_ns) &&
	       count_steps(evidence, oom, oom->growth_stack, first_ns) == 0;
}

/* True if a model was run on the device after `since_ns`. */
static bool has_run(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom, uint64_t since_ns)
{
	struct gpucache_site site;

	for (uint64_t i = 0; i < evidence->n_sites; i++) {
		enum gpc_purpose purpose;

		if (!gpc_evidence_site(evidence, i, oom->device, &site) || site.last_ns <= since_ns)
			continue;
		purpose = gpc_purpose_of(gpc_evidence_frames(evidence, site.stack));
		if (purpose == GPC_PURPOSE_ACTIVATIONS || purpose == GPC_PURPOSE_GRADIENTS)
			return true;
	}
	return false;
}

bool gpc_kept_may_be_one_model(const struct gpc_evidence *evidence, const struct gpucache_oom *oom)
{
	uint64_t first_ns;

	return has_grown_whole(evidence, oom, GPC_PURPOSE_WEIGHTS, &first_ns) &&
	       !has_run(evidence, oom, first_ns);
}

static struct gpc_kept find(
	const struct gpc_evidence *evidence, const struct gpucache_oom *oom, uint64_t n_inputs)
{
	const struct gpucache_holder *biggest = NULL;
	struct paths paths = { .n_inputs = n_inputs };
	struct gpc_kept kept = { 0 };
	uint64_t first_ns = UINT64_MAX;

	if (!oom->torch.requested || !oom->torch.allocated)
		return kept;
	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];
		enum gpc_purpose purpose =
			gpc_purpose_of(gpc_evidence_frames(evidence, holder->stack));

		if (purpose != GPC_PURPOSE_ACTIVATIONS && purpose != GPC_PURPOSE_INPUTS)
			continue;
		if (add_holder(&paths, evidence, oom, holder) &&
			purpose == GPC_PURPOSE_ACTIVATIONS &&
			(!biggest || holder->bytes > biggest->bytes))
			biggest = holder;
	}
	kept.n_passes = count_passes(&paths) ?: count_results(&paths);
	if (kept.n_passes < MANY_PASSES || !biggest ||
		(!gpc_kept_most(evidence, oom, biggest, &first_ns) &&
			!is_kept_with_inputs(&paths, biggest->n_blocks)))
		return (struct gpc_kept){ 0 };
	kept.stack = biggest->stack;
	kept.n_passes =
		gpc_smaller(kept.n_passes, count_steps(evidence, oom, kept.stack, first_ns));
	if (kept.n_passes < MANY_PASSES)
		return (struct gpc_kept){ 0 };
	/* The running pass needs its own tensors. */
	kept.bytes = paths.bytes - paths.bytes / kept.n_passes;
	return is_reason(oom, kept.bytes) ? kept : (struct gpc_kept){ 0 };
}

struct gpc_kept gpc_kept_find(const struct gpc_evidence *evidence, const struct gpucache_oom *oom)
{
	struct gpc_kept kept = find(evidence, oom, 0);

	return kept.stack ? kept : find(evidence, oom, count_inputs(evidence, oom));
}
