/* SPDX-License-Identifier: Apache-2.0 */
/* Text folds what a reader skips; JSON has every frame, until there are very many. */
#include "tools/gpumem-report/output/stack.h"

#include <string.h>

/* A run of native library frames is folded if it is longer than this. */
#define LEAST_FOLDED 4

/* The most bytes of frames in one document: of later stacks, JSON has only the call sites. */
#define MOST_BYTES ((size_t)128 << 20)

static const struct gpc_column columns[] = {
	{ NULL, "", 3 }, /* the mark of the call site */
	{ NULL, "", 2 }, /* #12 */
	{ NULL, "" },
	{ "language" },
	{ "function" },
	{ "file" },
	{ "line" },
	{ "module" },
	{ "module_offset" },
	{ "is_inlined" },
	{ "is_call_site" },
};
static const struct gpc_section section = { "stack", NULL, GPC_COLUMNS(columns) };

static void show_frame(struct gpc_document *doc, const struct gpc_stack_frames *stack, size_t i)
{
	const struct gpc_frame *frame = &stack->frames[i];
	bool is_site = (int)i == stack->site;
	struct gpc_cell cell;
	GPC_TEXT(number, 16);
	GPC_TEXT(text, 600);

	gpc_text_add(&number, "#%zu", i);
	gpc_frame_describe(frame, true, &text);
	gpc_text_add(&text, "%s", frame->is_inlined ? " (inlined)" : "");
	cell = gpc_sentence(text.buf);
	cell.ink = is_site ? GPC_INK_BOLD : GPC_INK_PLAIN;
	gpc_document_row(doc, gpc_name(is_site ? ">" : ""), gpc_name(number.buf), cell,
		gpc_name(frame->is_python ? "python" : "native"), gpc_name(frame->function),
		gpc_name(frame->file), gpc_number(gpc_unless_zero(frame->line)),
		gpc_name(frame->module),
		gpc_number(frame->is_python ? GPUCACHE_UNKNOWN : frame->offset),
		gpc_truth(frame->is_inlined), gpc_truth(is_site));
}

static void show_all(struct gpc_document *doc, const struct gpc_stack_frames *stack)
{
	static size_t n_bytes;

	for (size_t i = 0; i < stack->n; i++)
		n_bytes += 200 + strlen(stack->frames[i].function ?: "") +
			   strlen(stack->frames[i].file ?: "");
	for (size_t i = 0; i < stack->n; i++)
		if (n_bytes <= MOST_BYTES || (int)i == stack->site)
			show_frame(doc, stack, i);
}

/* Returns the end of the run of native library frames that begins at i; i: there is none.  The site ends a run. */
static size_t run_of_library(const struct gpc_stack_frames *stack, size_t i)
{
	while (i < stack->n && !stack->frames[i].is_python && stack->frames[i].is_library &&
		(int)i != stack->site)
		i++;
	return i;
}

/* "... 23 frames of libtorch_cpu.so, libtorch_cuda.so" */
static void say_folded(
	struct gpc_document *doc, const struct gpc_stack_frames *stack, size_t first, size_t end)
{
	GPC_TEXT(names, 200);

	for (size_t i = first; i < end; i++) {
		const char *module = stack->frames[i].module;
		const char *name = module ? gpc_base_name(module) : "";

		/* One name may be a prefix of another: "libtorch.so", "libtorch.so.2". */
		if (*name && !strstr(names.buf, name))
			gpc_text_add(&names, "%s%s", names.len ? ", " : "", name);
	}
	gpc_document_say(doc, "        ... %zu frames of %s", end - first, names.buf);
}

static void show_some(
	struct gpc_document *doc, const struct gpc_stack_frames *stack, unsigned limit)
{
	unsigned n_shown = 0;
	size_t n_more = 0;

	for (size_t i = 0; i < stack->n; i++) {
		size_t end = limit ? run_of_library(stack, i) : i;

		if (end - i > LEAST_FOLDED && end > i) {
			show_frame(doc, stack, i);
			say_folded(doc, stack, i + 1, end);
			n_shown += 2;
			i = end - 1;
		} else if (limit && n_shown >= limit && !stack->frames[i].is_python) {
			n_more++;
		} else {
			show_frame(doc, stack, i);
			n_shown++;
		}
	}
	if (n_more)
		gpc_document_say(doc, "    ... %zu more", n_more);
}

void gpc_stack_show(const struct gpc_report *report, uint32_t id, unsigned limit)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);
	struct gpc_document *doc = report->doc;

	gpc_document_open(doc, &section);
	if (!stack)
		gpc_document_say(doc, "    %s",
			id ? "(its stack was not recorded)" : "(no stack was taken)");
	else if (gpc_document_is_whole(doc))
		show_all(doc, stack);
	else
		show_some(doc, stack, limit);
	if (stack && stack->flags & GPUCACHE_STACK_CUT)
		gpc_document_say(doc, "    ... deeper than is recorded");
	if (stack && stack->flags & GPUCACHE_STACK_NO_PYTHON)
		gpc_document_say(doc, "    (its Python frames could not be read safely)");
	gpc_document_close(doc);
}
