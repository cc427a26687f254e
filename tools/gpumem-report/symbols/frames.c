/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames get a class by their function and module.  Then the frames of the interpreter are replaced by the
 * Python frames that they ran: each evaluation loop by the Python frames up to and including the next one entered from
 * C.  The call site is the innermost frame of the program in the merged list.
 */
#include "tools/gpumem-report/symbols/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "model/libraries.h"
#include "tools/gpumem-report/symbols/python_code.h"
#include "tools/gpumem-report/symbols/short_names.h"

/* Longer names do not fit on a terminal line next to a frame's number. */
#define MAX_WHOLE 100

/* What is said of one frame. */
#define MAX_WORDS 300

#define NO_CODE 1 /* gpc_frame.text of all Python frames whose code was not recorded */

enum frame_class {
	CLASS_PROGRAM,
	CLASS_LIBRARY,
	CLASS_PLUMBING,    /* only passes requests on: CUDA's runtime, libc, libstdc++ */
	CLASS_HIDDEN,      /* our own library and its unwinder: never shown */
	CLASS_INTERPRETER, /* CPython, and its calls into C */
	CLASS_EVAL,        /* CPython's evaluation loop, which runs Python frames */
};

struct gpc_frames {
	const struct gpc_recording *recording;
	struct gpc_symbols *symbols;
	struct gpc_report_codes *codes;
	struct gpc_stack_frames **stacks; /* parallel to recording->stacks */
};

static bool starts_with_any(const char *text, const char *const prefixes[])
{
	for (; *prefixes; prefixes++)
		if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return false;
}

/* True for the functions of libc that call main, or a thread's function. */
static bool is_start(const char *function)
{
	static const char *const names[] = { "_start", "__libc_start_main",
		"__libc_start_call_main", "start_thread", "clone", "clone3", "__clone", "__clone3",
		NULL };
	/* Symbols may carry a version: __libc_start_main@@GLIBC_2.34. */
	size_t len = strcspn(function, "@");

	for (const char *const *name = names; *name; name++)
		if (strlen(*name) == len && memcmp(*name, function, len) == 0)
			return true;
	return false;
}

/* True for the C++ library: by name, because the code of its templates is in the module that instantiates them. */
static bool is_of_language(const char *function)
{
	static const char *const scopes[] = { "std::", "__gnu_cxx::", NULL };
	GPC_TEXT(text, 64);

	gpc_name_short(function, &text);
	return starts_with_any(text.buf, scopes);
}

static enum frame_class class_of(const struct gpc_symbol *symbol)
{
	/* By name, too: a program may link the CUDA runtime statically. */
	static const char *const runtime[] = { "cudaMalloc", "cudaHostAlloc", "cuMemAlloc",
		"cuMemHostAlloc", "__cudart", "libcudart_static", NULL };
	static const char *const evals[] = { "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx",
		NULL };
	static const char *const python[] = { "_Py", "Py", "py_", "slot_tp_", "slot_sq_",
		"slot_mp_", "slot_nb_", "type_call", "method_vectorcall", "cfunction_",
		"function_code_fastcall", "builtin_exec", NULL };
	const char *function = symbol->function ? symbol->function : "";
	enum gpc_library_kind kind =
		symbol->module ? gpc_library_kind_of(symbol->module) : GPC_LIBRARY_PROGRAM;

	if (kind == GPC_LIBRARY_OURS || is_start(function))
		return CLASS_HIDDEN;
	if (starts_with_any(function, evals))
		return CLASS_EVAL;
	if (kind == GPC_LIBRARY_INTERPRETER || starts_with_any(function, python))
		return CLASS_INTERPRETER;
	if (kind == GPC_LIBRARY_DRIVER || kind == GPC_LIBRARY_SYSTEM ||
		starts_with_any(function, runtime) || is_of_language(function))
		return CLASS_PLUMBING;
	return kind == GPC_LIBRARY_PROGRAM ? CLASS_PROGRAM : CLASS_LIBRARY;
}

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
		.is_library = symbol->class != CLASS_PROGRAM,
		.is_plumbing = symbol->class == CLASS_PLUMBING,
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
		symbol->class = class_of(symbol);
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
static enum frame_class class_of_list(const struct gpc_symbol_list *list)
{
	return list->n ? list->rows[list->n - 1].class : CLASS_HIDDEN;
}

static void merge(struct gpc_frames *frames, struct gpc_stack_frames *stack,
	const struct gpc_stack_view *view, struct gpc_symbol_list *const *symbols,
	const enum frame_class *classes)
{
	unsigned n_evals = 0;
	unsigned next = 0;

	for (unsigned i = 0; i < view->n_native; i++)
		n_evals += classes[i] == CLASS_EVAL;
	for (unsigned i = 0; i < view->n_native; i++) {
		if (classes[i] == CLASS_EVAL) {
			n_evals--;
			/* The outermost loop (n_evals is 0) ran all remaining Python frames. */
			next = add_python_run(frames, stack, view, next, n_evals == 0);
		} else if (classes[i] == CLASS_INTERPRETER) {
			/*
			 * An interpreter without symbols shows no evaluation loop: its innermost frame is replaced
			 * by all Python frames.
			 */
			if (n_evals == 0 && next == 0)
				next = add_python_run(frames, stack, view, next, true);
		} else if (classes[i] != CLASS_HIDDEN) {
			add_native_list(stack, symbols[i]);
		}
	}
	add_python_run(frames, stack, view, next, true);
}

/* The path of the frame's file from its Python package on ("torch/nn/..."); "": in no package. */
static const char *package_of(const struct gpc_frame *frame)
{
	const char *package = frame->file ? gpc_library_package(frame->file) : NULL;

	return package ? package : "";
}

static bool is_same_package(const char *a, const char *b)
{
	size_t len = strcspn(a, "/");

	return len == strcspn(b, "/") && memcmp(a, b, len) == 0;
}

/*
 * The site of a stack whose Python frames are all in libraries: the frame that called the innermost package, or if no
 * other package called that one, its outermost frame.
 */
static int library_site_of(const struct gpc_stack_frames *stack)
{
	const char *asker = NULL;
	int site = -1;

	for (size_t i = 0; i < stack->n; i++) {
		const char *package = package_of(&stack->frames[i]);

		if (!stack->frames[i].is_python || (!*package && site >= 0))
			continue;
		if (!asker || !*asker)
			asker = package;
		site = (int)i;
		if (!is_same_package(package, asker))
			break;
	}
	return site;
}

/* The frame of a node of PyTorch's backward pass, whose thread has no frame of the program; -1: there is none. */
static int node_of(const struct gpc_stack_frames *stack)
{
	for (size_t i = 0; i < stack->n; i++) {
		GPC_TEXT(text, 64);

		if (stack->frames[i].function && gpc_name_node(stack->frames[i].function, &text))
			return (int)i;
	}
	return -1;
}

static int site_of(const struct gpc_stack_frames *stack)
{
	bool has_python = false;
	int program = -1;
	int library = -1;

	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (frame->is_python && !frame->is_library)
			return (int)i;
		has_python |= frame->is_python;
		if (program < 0 && !frame->is_library)
			program = (int)i;
		if (library < 0 && !frame->is_plumbing)
			library = (int)i;
	}
	if (has_python)
		return library_site_of(stack);
	if (program < 0)
		program = node_of(stack);
	if (program < 0)
		program = library;
	return program >= 0 || stack->n == 0 ? program : 0;
}

static bool is_operator(const struct gpc_frame *frame)
{
	GPC_TEXT(text, 64);

	return !frame->is_python && frame->function && gpc_name_operator(frame->function, &text);
}

/* True for __torch_function__, which PyTorch calls before many of its functions: its name does not tell which. */
static bool is_detour(const struct gpc_frame *frame)
{
	return frame->function && strstr(frame->function, "__torch_function__");
}

/*
 * What the site called: the innermost Python frame of a library.  Without Python frames: the outermost operator of
 * PyTorch, or without operators, the outermost native function that is neither plumbing nor inlined.
 */
static int via_of(const struct gpc_stack_frames *stack)
{
	int via = -1;

	for (int i = 0; i < stack->site; i++) {
		if (stack->frames[i].is_python && !is_detour(&stack->frames[i]))
			return i;
		if (!stack->frames[i].is_python && !stack->frames[i].is_plumbing &&
			!stack->frames[i].is_inlined &&
			(via < 0 || is_operator(&stack->frames[i]) ||
				!is_operator(&stack->frames[via])))
			via = i;
	}
	return via;
}

uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash)
{
	const uint64_t parts[] = { frame->text, frame->line };

	return gpc_hash_bytes(hash, parts, sizeof parts);
}

static struct gpc_stack_frames *resolve(
	struct gpc_frames *frames, const struct gpc_stack_view *view)
{
	struct gpc_symbol_list **symbols = gpc_new(view->n_native + 1u, sizeof *symbols);
	enum frame_class *classes = gpc_new(view->n_native + 1u, sizeof *classes);
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
	stack->site = site_of(stack);
	stack->via = via_of(stack);
	stack->hash = GPC_HASH_START;
	for (size_t i = 0; i < stack->n; i++)
		stack->hash = gpc_frame_hash(&stack->frames[i], stack->hash);
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

/* Appends the function's name: in full if `whole` and not too long, else without templates and parameters. */
static void add_function(const struct gpc_frame *frame, bool whole, struct gpc_text *ret_text)
{
	if (!frame->function)
		gpc_text_add(ret_text, "?");
	else if (whole && strlen(frame->function) <= MAX_WHOLE)
		gpc_text_add(ret_text, "%s", frame->function);
	else
		gpc_name_short(frame->function, ret_text);
}

void gpc_frame_describe(const struct gpc_frame *frame, bool whole_path, struct gpc_text *ret_text)
{
	size_t start = ret_text->len;

	if (frame->file) {
		add_function(frame, whole_path, ret_text);
		gpc_text_add(
			ret_text, "  %s", whole_path ? frame->file : gpc_base_name(frame->file));
		if (frame->line)
			gpc_text_add(ret_text, ":%u", (unsigned)frame->line);
	} else if (frame->is_python) {
		gpc_text_add(ret_text, "?  (a Python frame that was not recorded)");
	} else if (frame->module && frame->function) {
		add_function(frame, whole_path, ret_text);
		gpc_text_add(ret_text, "  %s", gpc_base_name(frame->module));
	} else if (frame->module) {
		gpc_text_add(ret_text, "%s+0x%llx",
			whole_path ? frame->module : gpc_base_name(frame->module),
			(unsigned long long)frame->offset);
	} else {
		gpc_text_add(ret_text, "0x%llx", (unsigned long long)frame->offset);
	}
	/* Functions and files are clean already, but the module's path is as the recording has it. */
	gpc_text_clean(ret_text->buf + start);
}

void gpc_frame_add_caller(
	const struct gpc_frame *site, const struct gpc_frame *caller, struct gpc_text *ret_text)
{
	GPC_TEXT(words, MAX_WORDS);
	const char *gap;

	gpc_frame_describe(caller, false, &words);
	gap = strstr(words.buf, "  ");
	gpc_text_add(ret_text, " < %.*s", gap ? (int)(gap - words.buf) : (int)words.len, words.buf);
	if (!caller->file)
		return;
	if (!site->file || strcmp(site->file, caller->file) != 0)
		gpc_text_add(ret_text, " %s", gap + 2);
	else if (caller->line)
		gpc_text_add(ret_text, ":%u", (unsigned)caller->line);
}

void gpc_frames_chain(const struct gpc_stack_frames *stack, size_t first, unsigned n_callers,
	struct gpc_text *ret_text)
{
	const struct gpc_frame *site = &stack->frames[first];
	GPC_TEXT(words, MAX_WORDS);
	const char *gap;

	gpc_frame_describe_site(site, &words);
	gap = strstr(words.buf, "  ");
	gpc_text_add(ret_text, "%.*s%s", gap ? (int)(gap - words.buf) : (int)words.len, words.buf,
		gap ? gap + 1 : "");
	gpc_text_clear(&words);
	if (n_callers > 0 && (int)first == stack->site)
		gpc_frames_via(stack, &words);
	if (words.len)
		gpc_text_add(ret_text, ", via %s", words.buf);
	for (size_t i = first + 1; i < stack->n && n_callers > 0; i++) {
		if (stack->frames[i].is_library)
			continue;
		gpc_frame_add_caller(site, &stack->frames[i], ret_text);
		n_callers--;
	}
}

void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text)
{
	const struct gpc_frame *frame = stack->via >= 0 ? &stack->frames[stack->via] : NULL;

	if (frame && !frame->function && frame->module)
		gpc_text_add(ret_text, "%s", gpc_base_name(frame->module));
	else if (frame && frame->function && !gpc_name_operator(frame->function, ret_text))
		gpc_name_short(frame->function, ret_text);
}

void gpc_frame_describe_site(const struct gpc_frame *frame, struct gpc_text *ret_text)
{
	if (frame->is_library && frame->function && gpc_name_node(frame->function, ret_text))
		gpc_text_add(ret_text, "  (backward pass)");
	else
		gpc_frame_describe(frame, false, ret_text);
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
	const struct gpc_stack_frames *stack = gpc_frames_find(frames, id);

	if (id && stack && stack->site >= 0)
		gpc_frames_chain(stack, (size_t)stack->site, n_callers, ret_text);
	else
		gpc_frames_site(frames, id, ret_text);
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
