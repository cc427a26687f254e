/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stack becomes an array of names: its frames outside libraries, the call site, and the library's function that
 * the site called.
 */
#include "tools/gpumem-report/holders/call_paths.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/holdings.h"

/* The most bytes of one name of a path; longer ones are cut.  File names may be long. */
#define MAX_NAME 400

static void add_frame(struct gpc_path *path, const struct gpc_frame *frame)
{
	GPC_TEXT(text, MAX_NAME);

	gpc_frame_describe_site(frame, &text);
	path->names[path->n++] = gpc_copy(text.buf);
}

/* Adds the names of the program's frames, of the site, and with `has_via`, of the library's function that it called. */
static void add_frames(struct gpc_path *path, const struct gpc_stack_frames *stack, bool has_via)
{
	GPC_TEXT(text, MAX_NAME);

	for (size_t i = stack->n; i-- > 0;) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (frame->is_library && (int)i != stack->site)
			continue;
		if ((int)i == stack->site)
			path->site = path->n;
		add_frame(path, frame);
	}
	if (has_via)
		gpc_frames_via(stack, &text);
	if (text.len)
		path->names[path->n++] = gpc_copy(text.buf);
}

static void fill(struct gpc_path *path, const struct gpc_report *report, const struct gpc_row *row)
{
	const struct gpc_stack_frames *stack =
		row->id ? gpc_frames_find(report->frames, row->id) : NULL;
	bool has_frames = stack && stack->site >= 0;
	GPC_TEXT(text, MAX_NAME);

	*path = (struct gpc_path){ .bytes = row->bytes, .n_blocks = row->n_blocks };
	path->names = gpc_new((has_frames ? stack->n : 1) + 2, sizeof *path->names);
	if (has_frames) {
		add_frames(path, stack, !row->kind);
	} else if (!row->kind) {
		gpc_frames_site(report->frames, row->id, &text);
		path->names[path->n++] = gpc_copy(text.buf);
	}
	gpc_text_clear(&text);
	gpc_text_add(&text, "(%s)", gpc_kind_words(row->kind));
	if (row->kind)
		path->names[path->n++] = gpc_copy(text.buf);
}

/* What no call site holds, by its own name. */
static void add_without_site(struct gpc_paths *paths, const char *words, uint64_t bytes)
{
	struct gpc_path *path = &paths->rows[paths->n];
	GPC_TEXT(text, MAX_NAME);

	if (!bytes)
		return;
	gpc_text_add(&text, "(%s)", words);
	*path = (struct gpc_path){
		.names = gpc_new(1, sizeof *path->names), .n = 1, .bytes = bytes
	};
	path->names[0] = gpc_copy(text.buf);
	paths->n++;
}

void gpc_paths_create(
	struct gpc_paths *paths, const struct gpc_report *report, const struct gpc_moment *moment)
{
	struct gpc_holdings holdings;

	gpc_holdings_at(&holdings, report, moment);
	*paths = (struct gpc_paths){ .rows = gpc_new(holdings.n + 2, sizeof *paths->rows),
		.total_bytes = holdings.total_bytes,
		.rest_bytes = holdings.rest_bytes };
	for (; paths->n < holdings.n; paths->n++)
		fill(&paths->rows[paths->n], report, &holdings.rows[paths->n]);
	add_without_site(
		paths, gpc_framework_words(holdings.framework)->unused, holdings.torch_bytes);
	add_without_site(paths, gpc_kind_words(GPUCACHE_KIND_REFUSED), holdings.refused_bytes);
	gpc_holdings_fini(&holdings);
}

void gpc_paths_fini(struct gpc_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		for (size_t k = 0; k < paths->rows[i].n; k++)
			free(paths->rows[i].names[k]);
		free(paths->rows[i].names);
	}
	free(paths->rows);
	*paths = (struct gpc_paths){ 0 };
}

size_t gpc_path_function_length(const char *name)
{
	const char *colon = strrchr(name, ':');

	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return strlen(name);
	return (size_t)(colon - name);
}
