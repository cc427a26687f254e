/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of frames per stack, native and Python ones merged, innermost first.
 *
 *      native                       Python                    merged
 *      cudaMalloc                   forward  model.py:212 *   cudaMalloc
 *      at::empty_cuda               step     train.py:40      at::empty_cuda
 *      _PyEval_EvalFrameDefault     main     train.py:9  *    forward  model.py:212
 *      slot_tp_call                                           step     train.py:40
 *      _PyEval_EvalFrameDefault     * entered from C          main     train.py:9
 *      main
 *
 * The frames of the interpreter are replaced by the Python frames that they ran: each evaluation loop by the Python
 * frames up to and including the next one that was entered from C.
 *
 * The site is the innermost frame of the program (model/libraries.h): a Python frame if the stack has any, else a
 * native one.  If all of these are in libraries, the site is
 *   - with Python frames, the one that called the innermost package;
 *   - without them, a node of the backward pass, else the innermost library that is not plumbing.
 *
 * Invariants  1 Every Python frame of the stack appears once, in order.  2 Frames of CPython's
 *               interpreter never appear.  3 `site` is a frame of the list, or -1 in an empty one.
 *             4 An inlined call is a frame of its own, before the one it was inlined into.
 * Threads     One.
 * Failure     A stack that was not recorded is NULL.  A frame without symbols has no function and no file.
 * Limits      Of interpreters only CPython is replaced; others appear as native frames.
 */
#ifndef GPC_REPORT_FRAMES_H
#define GPC_REPORT_FRAMES_H

#include "model/libraries.h"
#include "tools/gpumem-report/symbols/symbolize.h"

struct gpc_frame {
	const char *function; /* NULL: unknown */
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

struct gpc_stack_frames {
	uint32_t flags; /* GPUCACHE_STACK_* */
	uint64_t hash;  /* equal for stacks whose frames print the same */
	size_t n;
	int site; /* the call site; -1: the list is empty */
	int via; /* the library's function that the site called; -1: it called the runtime itself */
	struct gpc_frame frames[];
};

struct gpc_frames; /* all stacks of a recording; the frames of a stack are made at first use */

struct gpc_frames *gpc_frames_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_frames_destroy(struct gpc_frames *frames);

/*
 * Iterates over the modules of which frames have no name, because the file was not found.  *i starts at 0.  Returns
 * false at the end.
 */
bool gpc_frames_next_missing(const struct gpc_frames *frames, size_t *i, const char **ret_path);

/* Returns stack `id`, or NULL. */
const struct gpc_stack_frames *gpc_frames_find(struct gpc_frames *frames, uint32_t id);

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
 * Appends the call site of stack `id` for a sentence, or why there is none: "Net.forward net.py:12", and with n_callers
 * what it called and who called it, ", via gelu < step:18".
 */
void gpc_frames_where(
	struct gpc_frames *frames, uint32_t id, unsigned n_callers, struct gpc_text *ret_text);

/*
 * Appends frame `first` and up to n_callers frames of the program that called it, for a sentence: "alloc train.c:9 <
 * remember:140 < main:200".
 */
void gpc_frames_chain(const struct gpc_stack_frames *stack, size_t first, unsigned n_callers,
	struct gpc_text *ret_text);

/* Appends the name of the function `via`: "Linear.forward", "gelu"; nothing if via is -1. */
void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text);

/* Continues `hash`, that of the frames before, with `frame`.  Frames that print the same have the same hash. */
uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash);

/* Appends the call site of stack `id`, or why there is none: "(no stack was taken)". */
void gpc_frames_site(struct gpc_frames *frames, uint32_t id, struct gpc_text *ret_text);

#endif
