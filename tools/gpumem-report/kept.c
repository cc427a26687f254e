/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results: the live tensors that lines of the program and of its model hold are counted a line; the least
 * count of any is the number of passes kept.  Renewed: the recorded tail is cut in eight windows, and the
 * least that a site holds in each has to rise.  Linear in holders and events, for the few sites that hold most.
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

#define N_WINDOWS 8

/* As often as that, a site of which blocks are freed again is one of a loop. */
#define MANY_RENEWALS 12

/* Most of what is in tensors, and what was short. */
static bool is_reason(const struct gpucache_oom *oom, uint64_t bytes)
{
	return bytes >= oom->short_by && bytes >= oom->torch.allocated / 2;
}

/* ---- results of many passes ---- */

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

/* ---- renewed ---- */

/* What one stack held in the second half of the recorded events, before the failure. */
struct level {
	int64_t bytes; /* first the sum of the changes; then, walking, what it holds */
	int64_t floors[N_WINDOWS];
	uint64_t n_mallocs;
	uint64_t n_frees;
};

struct levels {
	const struct gpc_report *report;
	const struct gpucache_oom *oom;
	uint64_t n_events;
	struct level rows[GPUCACHE_MAX_OOM_HOLDERS];
};

static bool next_event(const struct levels *levels, struct gpc_event_cursor *cursor,
	struct gpucache_event *ret_event)
{
	while (gpc_recording_next_event(levels->report->recording, cursor, ret_event)) {
		if (ret_event->time_ns > levels->oom->time_ns)
			return false;
		if (ret_event->device == levels->oom->device &&
			ret_event->alloc_kind == GPUCACHE_KIND_TENSOR &&
			(ret_event->kind == GPUCACHE_EVENT_MALLOC ||
				ret_event->kind == GPUCACHE_EVENT_FREE))
			return true;
	}
	return false;
}

static struct level *level_of(struct levels *levels, uint32_t stack)
{
	for (uint32_t i = 0; i < levels->oom->n_holders; i++)
		if (levels->oom->holders[i].stack == stack)
			return &levels->rows[i];
	return NULL;
}

static int64_t change_of(const struct gpucache_event *event)
{
	return event->kind == GPUCACHE_EVENT_MALLOC ? (int64_t)event->requested
						    : -(int64_t)event->requested;
}

/* What each held when the events begin: what it held at the failure, less all changes. */
static void find_start(struct levels *levels)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	while (next_event(levels, &cursor, &event)) {
		struct level *level = level_of(levels, event.stack);

		levels->n_events++;
		if (level)
			level->bytes += change_of(&event);
	}
	for (uint32_t i = 0; i < levels->oom->n_holders; i++)
		levels->rows[i].bytes =
			(int64_t)levels->oom->holders[i].bytes - levels->rows[i].bytes;
}

static void begin_window(struct levels *levels, uint64_t window)
{
	for (uint32_t i = 0; i < levels->oom->n_holders; i++)
		levels->rows[i].floors[window] = levels->rows[i].bytes;
}

static void find_floors(struct levels *levels)
{
	uint64_t size = levels->n_events / 2 / N_WINDOWS;
	uint64_t first = levels->n_events - size * N_WINDOWS;
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	for (uint64_t n = 0; next_event(levels, &cursor, &event); n++) {
		struct level *level = level_of(levels, event.stack);
		uint64_t window = n < first ? 0 : (n - first) / size;

		if (n >= first && (n - first) % size == 0)
			begin_window(levels, window);
		if (!level)
			continue;
		level->bytes += change_of(&event);
		if (n < first)
			continue;
		level->n_mallocs += event.kind == GPUCACHE_EVENT_MALLOC;
		level->n_frees += event.kind == GPUCACHE_EVENT_FREE;
		if (level->bytes < level->floors[window])
			level->floors[window] = level->bytes;
	}
}

static bool is_renewed(const struct level *level)
{
	if (level->n_mallocs < MANY_RENEWALS || level->n_frees < level->n_mallocs / 2)
		return false;
	for (unsigned w = 1; w < N_WINDOWS; w++)
		if (level->floors[w] <= level->floors[w - 1])
			return false;
	return true;
}

static struct gpc_kept find_renewed(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct levels levels = { .report = report, .oom = oom };
	struct gpc_kept kept = { 0 };
	uint64_t biggest = 0;

	find_start(&levels);
	if (levels.n_events < 2 * N_WINDOWS)
		return kept;
	find_floors(&levels);
	for (uint32_t i = 0; i < oom->n_holders; i++) {
		if (!is_renewed(&levels.rows[i]))
			continue;
		kept.bytes = gpc_bytes_add(kept.bytes, oom->holders[i].bytes);
		if (oom->holders[i].bytes > biggest) {
			biggest = oom->holders[i].bytes;
			kept.stack = oom->holders[i].stack;
		}
	}
	return is_reason(oom, kept.bytes) ? kept : (struct gpc_kept){ 0 };
}

struct gpc_kept gpc_kept_find(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_kept kept = { 0 };

	if (!oom->torch.requested || !oom->torch.allocated ||
		oom->verdict == GPUCACHE_VERDICT_GROWTH)
		return kept;
	kept = find_results(report, oom);
	return kept.stack ? kept : find_renewed(report, oom);
}
