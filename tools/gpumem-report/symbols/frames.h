/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of frames per stack of a recording, native and Python ones merged, innermost first (names/frames.h).
 *
 * The frames of the interpreter are replaced by the Python frames that they ran: each evaluation loop by the Python
 * frames up to and including the next one that was entered from C.
 *
 * Invariants  1 Every Python frame of the stack appears once, in order.  2 Frames of CPython's
 *               interpreter never appear.  3 `site` is a frame of the list, or -1 in an empty one.
 * Threads     One.
 * Failure     A stack that was not recorded is NULL.  A frame without symbols has no function and no file.
 * Limits      Of interpreters only CPython is replaced; others appear as native frames.
 */
#ifndef GPC_REPORT_FRAMES_H
#define GPC_REPORT_FRAMES_H

#include "names/frames.h"
#include "tools/gpumem-report/symbols/symbolize.h"

struct gpc_frames; /* all stacks of a recording; the frames of a stack are made at first use */

struct gpc_frames *gpc_frames_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_frames_destroy(struct gpc_frames *frames);

/*
 * Iterates over the modules of which frames have no name, because the file was not found.  *i starts at 0.  Returns
 * false at the end.
 */
bool gpc_frames_next_missing(const struct gpc_frames *frames, size_t *i, const char **ret_path);

/* A file of the program whose call sites, of those that were asked for, have names but no lines; NULL: there is none. */
const char *gpc_frames_lineless(const struct gpc_frames *frames);

/* Returns stack `id`, or NULL. */
const struct gpc_stack_frames *gpc_frames_find(struct gpc_frames *frames, uint32_t id);

/*
 * Appends the call site of stack `id` for a sentence, or why there is none: "Net.forward net.py:12", and with n_callers
 * what it called and who called it, ", via gelu < step:18".
 */
void gpc_frames_where(
	struct gpc_frames *frames, uint32_t id, unsigned n_callers, struct gpc_text *ret_text);

/* Appends the call site of stack `id`, or why there is none: "(no stack was taken)". */
void gpc_frames_site(struct gpc_frames *frames, uint32_t id, struct gpc_text *ret_text);

#endif
