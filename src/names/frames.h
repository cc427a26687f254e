/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a stack with their names: which of them is the call site, and how a call site is said.
 *
 *      native                       Python                    merged
 *      cudaMalloc                   forward  model.py:212 *   cudaMalloc
 *      at::empty_cuda               step     train.py:40      at::empty_cuda
 *      _PyEval_EvalFrameDefault     main     train.py:9  *    forward  model.py:212      the site
 *      slot_tp_call                                           step     train.py:40       its callers
 *      _PyEval_EvalFrameDefault     * entered from C          main     train.py:9
 *      main
 *
 * The report merges the frames of a recording (tools/gpumem-report/symbols/frames.h), the library those of the running
 * process (stack/named.h).  All else is said once, here.
 *
 * The site is the innermost frame of the program (model/libraries.h): a Python frame if the stack has any, else a
 * native one.  If all of these are in libraries, the site is
 *   - a node of the backward pass, unless Python called it; else
 *   - with Python frames, the one that called the innermost package;
 *   - without them, the innermost library that is not plumbing.
 *
 * Threads     Any: pure functions.
 * Failure     A frame without symbols has no function and no file.  A text that does not fit is cut.
 * Limits      Goes by the names of functions and files.
 */
#ifndef GPC_NAMES_FRAMES_H
#define GPC_NAMES_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/libraries.h"

enum gpc_frame_class {
	GPC_FRAME_PROGRAM,
	GPC_FRAME_LIBRARY,
	GPC_FRAME_PLUMBING,    /* only passes requests on: CUDA's runtime, libc, libstdc++ */
	GPC_FRAME_HIDDEN,      /* our own library and its unwinder: never shown */
	GPC_FRAME_INTERPRETER, /* CPython, and its calls into C */
	GPC_FRAME_EVAL,        /* CPython's evaluation loop, which runs Python frames */
};

struct gpc_frame {
	const char *function; /* demangled, or its short name; NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
	const char *module;
	uint64_t offset;
	/* A hash of what gpc_frame_describe prints, for a Python frame without its line; not 0. */
	uint64_t text;
	uint64_t place; /* differs for different instructions; not 0 */
	bool is_python;
	bool is_inlined; /* into the frame after it */
	bool is_library; /* not the program: a library, the runtime, the path to the driver */
	bool is_plumbing; /* is_library, and between the program and the driver: CUDA's runtime, libc, libstdc++ */
};

/* Innermost first.  An inlined call is a frame of its own, before the one it was inlined into. */
struct gpc_stack_frames {
	uint32_t flags; /* GPUCACHE_STACK_* */
	uint64_t hash;  /* equal for stacks whose frames print the same */
	size_t n;
	int site; /* the call site; -1: the list is empty */
	int via; /* the library's function that the site called; -1: it called the runtime itself */
	struct gpc_frame frames[];
};

/* The class of a native frame; each name may be NULL. */
enum gpc_frame_class gpc_frame_class_of(const char *function, const char *module);

/* Sets `site`, `via` and `hash` of a list whose frames are complete. */
void gpc_frames_finish(struct gpc_stack_frames *stack);

/* Continues `hash`, that of the frames before, with `frame`.  Frames that print the same have the same hash. */
uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash);

/* ---- words (frame_words.c) ---- */

/*
 * Appends "function  file:line" or "module+0x12ab".  whole_path: the file or module with its path, and the function
 * with its parameters; else the base name and the short name (short_names.h).  A function without a file is followed by the
 * base name of its module.
 */
void gpc_frame_describe(const struct gpc_frame *frame, bool whole_path, struct gpc_text *ret_text);

/* The same, with the short names, for a site; a node of the backward pass as "AddmmBackward0  (backward pass)". */
void gpc_frame_describe_site(const struct gpc_frame *frame, struct gpc_text *ret_text);

/*
 * Appends a caller to a site: " < train_step:60", or " < train_step train.py:60" if that is another file than the
 * site's, or " < main" without a file.
 */
void gpc_frame_add_caller(
	const struct gpc_frame *site, const struct gpc_frame *caller, struct gpc_text *ret_text);

/*
 * Appends frame `first` and up to n_callers frames of the program that called it, for a sentence: "Net.forward net.py:12,
 * via gelu < train_step:18 < main:40".
 */
void gpc_frames_chain(const struct gpc_stack_frames *stack, size_t first, unsigned n_callers,
	struct gpc_text *ret_text);

/*
 * Appends the chain of the site, without what does not fit into the rest of the text: first the classes of callers, then
 * callers, what it called (if has_via), and its own class.  The list must not be empty.
 */
void gpc_frames_fit(const struct gpc_stack_frames *stack, bool has_via, struct gpc_text *ret_text);

/* The same for the site of stack `id`; or why there is none: "(no stack was taken)".  stack: NULL if it was not recorded. */
void gpc_frames_place(const struct gpc_stack_frames *stack, uint32_t id, unsigned n_callers,
	struct gpc_text *ret_text);

/* Appends the name of the function `via`: "Linear.forward", "gelu"; nothing if via is -1. */
void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text);

#endif
