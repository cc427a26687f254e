/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stack as a person reads it: native frames and Python frames in one list, innermost first.
 *
 *      native                       Python                    read as
 *      cudaMalloc                   forward  model.py:212 *   cudaMalloc
 *      at::empty_cuda               step     train.py:40      at::empty_cuda
 *      _PyEval_EvalFrameDefault     main     train.py:9  *    forward  model.py:212
 *      slot_tp_call                                           step     train.py:40
 *      _PyEval_EvalFrameDefault     * entered from C          main     train.py:9
 *      main
 *
 * A run of interpreter frames is replaced by the Python frames that it ran: each evaluation loop
 * in it takes Python frames up to and with the next one that was entered from C.
 *
 * The site is the innermost frame of the program (model/libraries.h): of its Python code, where there is
 * any on the stack, else of its native code.  Where all is a library's, it is the node of a backward
 * pass, or the outermost frame that is not of the library that asked, or the outermost one.
 *
 * Invariants  1 Every Python frame of the stack appears once, in order.  2 Frames of an
 *               interpreter never appear.  3 `site` is a frame of the list, or -1 in an empty one.
 *             4 An inlined call is a frame of its own, before the one it was inlined into.
 * Threads     One.
 * Failure     NULL if the stack is unknown; frames without names where nothing names them.
 * Limits      CPython's frames; other interpreters are shown as the native code they are.
 */
#ifndef GPC_REPORT_FRAMES_H
#define GPC_REPORT_FRAMES_H

#include "tools/gpumem-report/symbolize.h"

struct gpc_frame {
	const char *function; /* NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;        /* 0: unknown */
	const char *module;
	uint64_t offset;
	uint64_t text; /* of a Python frame: its code's (codes.h); else 0 */
	bool is_python;
	bool is_inlined;  /* into the frame after it */
	bool is_library;  /* not of the program: a library, the runtime, the way to the driver */
	bool is_plumbing; /* is_library, and nobody asks who called through it */
};

struct gpc_stack_frames {
	uint32_t id;
	uint32_t flags; /* GPUCACHE_STACK_* */
	uint64_t hash;  /* gpc_frames_hash, once it was asked for; else 0 */
	size_t n;
	int site; /* the frame that is blamed, -1: none */
	int via;  /* what it called that led here, in a library; -1: it asked itself */
	struct gpc_frame frames[];
};

struct gpc_frames; /* all stacks of a recording, each resolved when first asked for */

struct gpc_frames *gpc_frames_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_frames_destroy(struct gpc_frames *frames);

/* The next module, from *i on, that starts at 0, that would have named frames but is not here. */
bool gpc_frames_next_missing(const struct gpc_frames *frames, size_t *i, const char **ret_path);

/* The stack `id`, or NULL. */
const struct gpc_stack_frames *gpc_frames_find(struct gpc_frames *frames, uint32_t id);

/*
 * "function  file:line", "module+0x12ab", with the whole path or its last part, and with it the whole
 * name or a short one.
 */
void gpc_frame_describe(const struct gpc_frame *frame, bool whole_path, struct gpc_text *ret_text);

/* The same of a site, whose name may be that of a node of the backward pass. */
void gpc_frame_describe_site(const struct gpc_frame *frame, struct gpc_text *ret_text);

/* What led from the site to the request, in a word: "Linear.forward", "gelu"; nothing without `via`. */
void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text);

/* Of frames from one end to the other, `hash` being that of those before: the same for what reads the same. */
uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash);

/* The same number for stacks that read the same, frame by frame; an unknown one reads like no other. */
uint64_t gpc_frames_hash(struct gpc_frames *frames, uint32_t id);

/* The call site of stack `id`, in words for every case. */
void gpc_frames_site(struct gpc_frames *frames, uint32_t id, struct gpc_text *ret_text);

#endif
