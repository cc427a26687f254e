/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of the interpreter are replaced by the Python frames that they ran: each evaluation loop by the Python
 * frames up to and including the next one entered from C.
 */
#include "tools/gpumem-report/symbols/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "format/memory.h"
#include "model/libraries.h"
#include "tools/gpumem-report/symbols/python_code.h"

#define NO_CODE 1 /* gpc_frame.text of all Python frames whose code was not recorded */

struct gpc_frames {
	const struct gpc_recording *recording;
	struct gpc_symbols *symbols;
	struct gpc_report_codes *codes;
	struct gpc_stack_frames **stacks; /* parallel to recording->stacks */
};

struct gpc_frames *gpc_frames_create(
	const struct gpc_recording *recording, const struct gpc_places *places)
{
	struct gpc_frames *frames = gpc_new(1, sizeof *frames);

	frames->recording = recording;
	frames->symbols = gpc_symbols_create(recording, places);
	frames->stacks = gpc_new(recording->n_stacks, sizeof *frames->stacks);
	frames->codes = gpc_report_codes_create(recording);
	return frames;
}

void gpc_frames_destroy(struct gpc_frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < frames->recording->n_stacks; i++)
		free(frames->stacks[i]);
	free(frames->stacks);
	gpc_report_codes_destroy(frames->codes);
	gpc_symbols_destroy(frames->symbols);
	free(frames);
}

static void add_python(
	const struct gpc_frames *frames, struct gpc_stack_frames *stack, uint64_t raw)
{
	struct gpc_frame *frame = &stack->frames[stack->n++];
	const struct gpc_code *code =
		gpc_report_codes_find(frames->codes, GPUCACHE_FRAME_CODE(raw));

	frame->is_python = true;
	frame->place = raw | GPUCACHE_FRAME_FROM_C;
	frame->text = NO_CODE;
	if (!code)
		return;
	frame->function = code->function;
	frame->file = code->file;
	frame->is_library = code->is_library;
	frame->text = code->text;
	frame->line = gpc_code_line(code, GPUCACHE_FRAME_OFFSET(raw));
}

/* Adds the Python frames from `next` to the first one entered from C, or with `all`, to the end.  Returns the next. */
static unsigned add_python_run(const struct gpc_frames *frames, struct gpc_stack_frames *stack,
	const struct gpc_stack_view *view, unsigned next, bool all)
{
	while (next < view->n_python) {
		uint64_t raw = view->python[next++];

		add_python(frames, stack, raw);
		if ((raw & GPUCACHE_FRAME_FROM_C) && !all)
			break;
	}
	return next;
}

static struct gpc_frame frame_of(const struct gpc_symbol *symbol)
{
	return (struct gpc_frame){
		.function = symbol->function,
		.file = symbol->file,
		.line = symbol->line,
		.module = symbol->module,
		.offset = symbol->offset,
		.text = symbol->text,
		/* Without bit 63, which the place of a Python frame has. */
		.place = (uintptr_t)symbol,
		.is_library = symbol->class != GPC_FRAME_PROGRAM,
		.is_plumbing = symbol->class == GPC_FRAME_PLUMBING,
	};
}

/* Sets text and class of an address's symbols, unless an earlier stack with the same address did so. */
static void judge(struct gpc_symbol_list *list)
{
	for (size_t i = 0; i < list->n && !list->is_judged; i++) {
		struct gpc_symbol *symbol = &list->rows[i];
		const struct gpc_frame frame = frame_of(symbol);
		GPC_TEXT(text, 600);

		gpc_frame_describe(&frame, true, &text);
		symbol->text = gpc_hash_bytes(GPC_HASH_START, text.buf, text.len + 1) | 1;
		symbol->class = gpc_frame_class_of(symbol->function, symbol->module);
		/* Names of inlined functions may lack their scope. */
		if (symbol->class == GPC_FRAME_PROGRAM && symbol->file &&
			gpc_library_holds_header(symbol->file))
			symbol->class = GPC_FRAME_PLUMBING;
	}
	list->is_judged = true;
}

/* Adds the frames of one return address: the inlined functions, then the function that they are inlined into. */
static void add_native_list(struct gpc_stack_frames *stack, const struct gpc_symbol_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		stack->frames[stack->n] = frame_of(&list->rows[i]);
		stack->frames[stack->n++].is_inlined = i + 1 < list->n;
	}
}

/* The class of the outermost function: what is inlined into the interpreter counts as the interpreter. */
static enum gpc_frame_class class_of_list(const struct gpc_symbol_list *list)
{
	return list->n ? list->rows[list->n - 1].class : GPC_FRAME_HIDDEN;
}

static void merge(struct gpc_frames *frames, struct gpc_stack_frames *stack,
	const struct gpc_stack_view *view, struct gpc_symbol_list *const *symbols,
	const enum gpc_frame_class *classes)
{
	unsigned n_evals = 0;
	unsigned next = 0;

	for (unsigned i = 0; i < view->n_native; i++)
		n_evals += classes[i] == GPC_FRAME_EVAL;
	for (unsigned i = 0; i < view->n_native; i++) {
		if (classes[i] == GPC_FRAME_EVAL) {
			n_evals--;
			/* The outermost loop (n_evals is 0) ran all remaining Python frames. */
			next = add_python_run(frames, stack, view, next, n_evals == 0);
		} else if (classes[i] == GPC_FRAME_INTERPRETER) {
			/*
			 * An interpreter without symbols shows no evaluation loop: its innermost frame is replaced
			 * by all Python frames.
			 */
			if (n_evals == 0 && next == 0)
				next = add_python_run(frames, stack, view, next, true);
		} else if (classes[i] != GPC_FRAME_HIDDEN) {
			add_native_list(stack, symbols[i]);
		}
	}
	add_python_run(frames, stack, view, next, true);
}

static struct gpc_stack_frames *resolve(
	struct gpc_frames *frames, const struct gpc_stack_view *view)
{
	struct gpc_symbol_list **symbols = gpc_new(view->n_native + 1u, sizeof *symbols);
	enum gpc_frame_class *classes = gpc_new(view->n_native + 1u, sizeof *classes);
	struct gpc_stack_frames *stack;
	size_t most = view->n_python;

	for (unsigned i = 0; i < view->n_native; i++) {
		symbols[i] = gpc_symbols_find(frames->symbols, view->native[i]);
		judge(symbols[i]);
		classes[i] = class_of_list(symbols[i]);
		most += symbols[i]->n;
	}
	stack = gpc_new(1, sizeof *stack + most * sizeof stack->frames[0]);
	stack->flags = view->flags;
	merge(frames, stack, view, symbols, classes);
	gpc_frames_finish(stack);
	free(symbols);
	free(classes);
	return stack;
}

const struct gpc_stack_frames *gpc_frames_find(struct gpc_frames *frames, uint32_t id)
{
	const struct gpc_recording *rec = frames->recording;
	size_t number = gpc_record_number(rec->stacks, rec->n_stacks, id);
	struct gpc_stack_view view;

	if (number == rec->n_stacks)
		return NULL;
	if (!frames->stacks[number] && gpc_recording_find_stack(rec, id, &view))
		frames->stacks[number] = resolve(frames, &view);
	return frames->stacks[number];
}

void gpc_frames_site(struct gpc_frames *frames, uint32_t id, struct gpc_text *ret_text)
{
	const struct gpc_stack_frames *stack;

	if (id == 0) {
		gpc_text_add(ret_text, "(no stack was taken)");
		return;
	}
	stack = gpc_frames_find(frames, id);
	if (!stack || stack->site < 0)
		gpc_text_add(ret_text, "(stack %u was not recorded)", (unsigned)id);
	else
		gpc_frame_describe_site(&stack->frames[stack->site], ret_text);
}

void gpc_frames_where(
	struct gpc_frames *frames, uint32_t id, unsigned n_callers, struct gpc_text *ret_text)
{
	gpc_frames_place(gpc_frames_find(frames, id), id, n_callers, ret_text);
}

/* Skips the driver, the runtime and the like: no view needs the names of their functions. */
bool gpc_frames_next_missing(const struct gpc_frames *frames, size_t *i, const char **ret_path)
{
	while (gpc_symbols_next_missing(frames->symbols, i, ret_path)) {
		enum gpc_library_kind kind = gpc_library_kind_of(*ret_path);

		if (kind == GPC_LIBRARY_PROGRAM || kind == GPC_LIBRARY_CUDA ||
			kind == GPC_LIBRARY_NAMED || kind == GPC_LIBRARY_PACKAGE)
			return true;
	}
	return false;
}

const char *gpc_frames_lineless(const struct gpc_frames *frames)
{
	for (size_t i = 0; i < frames->recording->n_stacks; i++) {
		const struct gpc_stack_frames *stack = frames->stacks[i];
		const struct gpc_frame *site =
			stack && stack->site >= 0 ? &stack->frames[stack->site] : NULL;

		if (site && !site->is_python && !site->is_library && site->function && !site->file)
			return site->module;
	}
	return NULL;
}
