/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stack for a reader: native and Python frames in one list, innermost first.
 *
 *      native                       Python                    read as
 *      cudaMalloc                   forward  model.py:212 *   cudaMalloc
 *      at::empty_cuda               step     train.py:40      at::empty_cuda
 *      _PyEval_EvalFrameDefault     main     train.py:9  *    forward  model.py:212
 *      slot_tp_call                                           step     train.py:40
 *      _PyEval_EvalFrameDefault     * entered from C          main     train.py:9
 *      main
 *
 * A run of interpreter frames is replaced by the Python frames that it ran: each evaluation loop in it takes Python
 * frames up to and including the next one entered from C.
 *
 * The site is the innermost frame of the program (model/libraries.h): of its Python code if the stack has any, else of
 * its native code.  If all frames are in libraries, it is the node of a backward pass, else the outermost frame outside
 * the library that made the request, else the outermost frame.
 *
 * Invariants  1 Every Python frame of the stack appears once, in order.  2 Frames of an
 *               interpreter never appear.  3 `site` is a frame of the list, or -1 in an empty one.
 *             4 An inlined call is a frame of its own, before the one it was inlined into.
 * Threads     One.
 * Failure     Returns NULL if the stack is unknown; frames without symbols have no names.
 * Limits      CPython only; other interpreters show as native code.
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
	/* A hash of what the frame reads, of a Python frame without its line; not 0. */
	uint64_t text;
	uint64_t place; /* identifies the instruction or return address; not 0 */
	bool is_python;
	bool is_inlined;  /* into the frame after it */
	bool is_library;  /* not the program: a library, the runtime, the path to the driver */
	bool is_plumbing; /* is_library, and of no interest as a caller */
};

struct gpc_stack_frames {
	uint32_t id;
	uint32_t flags; /* GPUCACHE_STACK_* */
	uint64_t hash;  /* equal for stacks whose frames read the same */
	size_t n;
	int site; /* the frame that is blamed; -1: none */
	int via;  /* the library frame that the site called; -1: it made the request itself */
	struct gpc_frame frames[];
};

struct gpc_frames; /* all stacks of a recording, each resolved at first use */

struct gpc_frames *gpc_frames_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_frames_destroy(struct gpc_frames *frames);

/* Iterates over the modules whose missing files left frames unnamed; *i starts at 0. */
bool gpc_frames_next_missing(const struct gpc_frames *frames, size_t *i, const char **ret_path);

/* Returns stack `id`, or NULL. */
const struct gpc_stack_frames *gpc_frames_find(struct gpc_frames *frames, uint32_t id);

/*
 * "function  file:line" or "module+0x12ab": with the whole path and name, or with the base name and a
 * short name.
 */
void gpc_frame_describe(const struct gpc_frame *frame, bool whole_path, struct gpc_text *ret_text);

/* The same for a site, whose name may be that of a node of the backward pass. */
void gpc_frame_describe_site(const struct gpc_frame *frame, struct gpc_text *ret_text);

/* The name of `via`: "Linear.forward", "gelu"; nothing without one. */
void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text);

/* Adds a frame to the hash of those before it; frames that read the same hash the same. */
uint64_t gpc_frame_hash(const struct gpc_frame *frame, uint64_t hash);

/* The call site of stack `id`; never empty. */
void gpc_frames_site(struct gpc_frames *frames, uint32_t id, struct gpc_text *ret_text);

#endif
