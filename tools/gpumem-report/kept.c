/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live tensors of each path into the model are counted; the least count of any is the number of passes
 * whose results are kept.  Quadratic in the holders of one failure, which are few.
 */
#include "tools/gpumem-report/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/gpumem-report/categories.h"

/* A step may hold several passes of its own: micro-batches of a pipeline, views of one picture. */
#define MANY_PASSES 8

/* Less than that part of what is held is a table that a model makes once. */
#define NEGLIGIBLE_PART 4096

/* Most of what is in tensors, and what was short. */
static bool is_reason(const struct gpucache_oom *oom, uint64_t bytes)
{
	return bytes >= oom->short_by && bytes >= oom->torch.allocated / 2;
}

struct path {
	uint64_t hash;
	uint64_t bytes;
	uint64_t n_blocks;
	bool is_in_module; /* it leads into a model */
};

struct paths {
	struct path rows[GPUCACHE_MAX_OOM_HOLDERS];
	size_t n;
};

static bool is_module_call(const struct gpc_frame *frame)
{
	return frame->is_library && strstr(frame->file, "/nn/modules/module.py") &&
	       strstr(frame->function, "call_impl");
}

/* From the outermost frame to the first line of the program within a model, or to the innermost line of it. */
static struct path path_of(const struct gpc_report *report, uint32_t id)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);
	struct path path = { .hash = GPC_FRAME_HASH_START };
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
	paths->rows[i].is_in_module |= path->is_in_module;
}

/* The least count of any path; 0: they do not tell. */
static uint64_t count_passes(const struct paths *paths, uint64_t bytes)
{
	uint64_t least = UINT64_MAX;
	uint64_t in_modules = 0;
	size_t n = 0;

	for (size_t i = 0; i < paths->n; i++) {
		const struct path *path = &paths->rows[i];

		if (path->bytes < bytes / NEGLIGIBLE_PART)
			continue;
		n++;
		if (path->is_in_module)
			in_modules += path->bytes;
		if (path->n_blocks < least)
			least = path->n_blocks;
	}
	return n > 1 && in_modules >= bytes / 2 ? least : 0;
}

static struct gpc_kept find_results(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct paths paths = { 0 };
	struct gpc_kept kept = { 0 };
	uint64_t biggest = 0;

	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];
		enum gpc_category category = gpc_category_of(report, holder->stack);
		struct path path;

		if (category != GPC_CATEGORY_ACTIVATIONS && category != GPC_CATEGORY_INPUTS)
			continue;
		path = path_of(report, holder->stack);
		path.bytes = holder->bytes;
		path.n_blocks = holder->n_blocks;
		add_path(&paths, &path);
		kept.bytes = gpc_bytes_add(kept.bytes, holder->bytes);
		if (category != GPC_CATEGORY_ACTIVATIONS || holder->bytes <= biggest)
			continue;
		biggest = holder->bytes;
		kept.stack = holder->stack;
	}
	kept.n_passes = count_passes(&paths, kept.bytes);
	if (kept.n_passes < MANY_PASSES || !kept.stack)
		return (struct gpc_kept){ 0 };
	kept.bytes -= kept.bytes / kept.n_passes; /* the last one's are needed */
	return is_reason(oom, kept.bytes) ? kept : (struct gpc_kept){ 0 };
}

struct gpc_kept gpc_kept_find(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	if (!oom->torch.requested || !oom->torch.allocated ||
		oom->verdict == GPUCACHE_VERDICT_GROWTH)
		return (struct gpc_kept){ 0 };
	return find_results(report, oom);
}
