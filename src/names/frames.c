/* SPDX-License-Identifier: Apache-2.0 */
/* A native frame gets its class by its function and module; the site is the innermost frame of the program. */
#include "names/frames.h"

#include <string.h>

#include "names/short_names.h"

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

/* True for the libraries of C++ and CUDA whose templates are in the module that instantiates them: so by name. */
static bool is_of_language(const char *function)
{
	static const char *const scopes[] = { "std::", "__gnu_cxx::", "thrust::", "cub::",
		"cuda::std::", "cuda::mr::", "cuda::__", NULL };
	GPC_TEXT(text, 64);

	gpc_name_short(function, &text);
	return starts_with_any(text.buf, scopes);
}

enum gpc_frame_class gpc_frame_class_of(const char *function, const char *module)
{
	/* By name, too: a program may link the CUDA runtime statically. */
	static const char *const runtime[] = { "cudaMalloc", "cudaHostAlloc", "cuMemAlloc",
		"cuMemHostAlloc", "__cudart", "libcudart_static", NULL };
	static const char *const evals[] = { "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx",
		NULL };
	static const char *const python[] = { "_Py", "Py", "py_", "slot_tp_", "slot_sq_",
		"slot_mp_", "slot_nb_", "type_call", "method_vectorcall", "cfunction_",
		"function_code_fastcall", "builtin_exec", NULL };
	enum gpc_library_kind kind = module ? gpc_library_kind_of(module) : GPC_LIBRARY_PROGRAM;

	function = function ? function : "";
	if (kind == GPC_LIBRARY_OURS || is_start(function))
		return GPC_FRAME_HIDDEN;
	if (starts_with_any(function, evals))
		return GPC_FRAME_EVAL;
	if (kind == GPC_LIBRARY_INTERPRETER || starts_with_any(function, python))
		return GPC_FRAME_INTERPRETER;
	if (kind == GPC_LIBRARY_DRIVER || kind == GPC_LIBRARY_SYSTEM ||
		starts_with_any(function, runtime) || is_of_language(function))
		return GPC_FRAME_PLUMBING;
	return kind == GPC_LIBRARY_PROGRAM ? GPC_FRAME_PROGRAM : GPC_FRAME_LIBRARY;
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
	int last_python = -1;
	int program = -1;
	int library = -1;
	int node;

	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (frame->is_python && !frame->is_library && frame->file)
			return (int)i;
		last_python = frame->is_python ? (int)i : last_python;
		if (program < 0 && !frame->is_library)
			program = (int)i;
		if (library < 0 && !frame->is_plumbing)
			library = (int)i;
	}
	if (program >= 0 && last_python < 0)
		return program;
	/* A node may call Python of PyTorch's own. */
	node = node_of(stack);
	if (node > last_python)
		return node;
	if (last_python >= 0)
		return library_site_of(stack);
	return library >= 0 || stack->n == 0 ? library : 0;
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

/* The outermost operator of PyTorch that the site called, or -1. */
static int operator_of(const struct gpc_stack_frames *stack)
{
	int i = stack->site - 1;

	while (i >= 0 && !is_operator(&stack->frames[i]))
		i--;
	return i;
}

/*
 * What the site called: the innermost Python frame of a library that no operator of PyTorch has called, as it calls those
 * of torch/_native; else the outermost operator, else the outermost native function that is neither plumbing nor inlined.
 */
static int via_of(const struct gpc_stack_frames *stack)
{
	const int called = operator_of(stack);
	int via = -1;

	for (int i = called + 1; i < stack->site; i++) {
		if (stack->frames[i].is_python && !is_detour(&stack->frames[i]))
			return i;
		if (!stack->frames[i].is_python && !stack->frames[i].is_plumbing &&
			!stack->frames[i].is_inlined)
			via = i;
	}
	return called >= 0 ? called : via;
}

uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash)
{
	hash = (hash ^ frame->text) * GPC_HASH_PRIME;
	return (hash ^ frame->line) * GPC_HASH_PRIME;
}

void gpc_frames_finish(struct gpc_stack_frames *stack)
{
	stack->site = site_of(stack);
	stack->via = via_of(stack);
	stack->hash = GPC_HASH_START;
	for (size_t i = 0; i < stack->n; i++)
		stack->hash = gpc_frame_hash(&stack->frames[i], stack->hash);
}
