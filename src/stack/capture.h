/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking: the stack of the calling thread as one 32-bit number.
 *
 *   native frames (unwind.h) --+
 *                              +--> depot.h --> id;  a new one goes to the sink: STACKS, CODES, MODULES
 *   Python frames (python.h) --+
 *
 * Both kinds are kept side by side; the reader of the recording merges them, by the flag that
 * marks a Python frame entered from C.
 *
 * Threads     capture, describe and the counts: any.  init and fini: one, before and after all
 *             others.
 * Locks       capture and describe: never with a lock of ours held; both may ask the loader
 *             (unwind.h, modules.h).
 * Failure     Id 0, "no stack known": no room, or nothing could be walked.  Parts that fail are
 *             left out one by one: no libunwind, glibc's unwinder; no unwinder, Python only.
 * Limits      Memory is bounded by max_stacks (about 350 bytes of address space each) and codes.h
 *             (4.5 MiB); pages that are not used are never touched.  A forked child makes a new
 *             struct gpc_stacks with init: the old locks may be held by threads that are not there
 *             any more. fini in the child is safe: it takes none.
 */
#ifndef GPC_STACK_CAPTURE_H
#define GPC_STACK_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "stack/codes.h"
#include "stack/depot.h"
#include "stack/modules.h"
#include "stack/python.h"
#include "stack/sink.h"
#include "stack/unwind.h"

#define GPC_STACKS_DEFAULT_DEPTH 64u
#define GPC_STACKS_MAX_DEPTH     GPUCACHE_MAX_FRAMES

struct gpc_stacks_params {
	struct gpc_stack_sink sink;
	/*
	 * dlsym(RTLD_DEFAULT, name) and dlsym(handle, name), whoever interposes dlsym in this
	 * process.
	 */
	void *(*lookup)(const char *name);
	void *(*lookup_in)(void *handle, const char *name);
	uint32_t max_depth;  /* frames of each kind; 0: GPC_STACKS_DEFAULT_DEPTH */
	uint32_t max_stacks; /* 0: GPC_DEPOT_DEFAULT_STACKS */
	bool with_native;
	bool with_python;
};

struct gpc_stacks {
	uint32_t max_depth;
	struct gpc_unwind unwind;
	struct gpc_python python;
	struct gpc_codes codes;
	struct gpc_depot depot;
	struct gpc_modules modules;
	_Atomic uint64_t n_no_python;
};

/* GPC_NO_METADATA; nothing is kept then. */
GPC_MUST_CHECK enum gpc_status gpc_stacks_init(
	struct gpc_stacks *stacks, const struct gpc_stacks_params *params);
void gpc_stacks_fini(struct gpc_stacks *stacks);

/*
 * The id of the calling thread's stack, or 0.  skip 0: it begins in the function that calls
 * this one.
 */
uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip);

/*
 * One line for a person: the innermost Python frame of the program (model/libraries.h), what it asked
 * a library for, and the program's callers: "grow train.py:41, via empty < step:60 < fit", with the
 * lines that are in that file; of libraries' frames alone the innermost.  Without Python the native
 * frame of the same rule: "function < caller (module)", and "AddmmBackward0 (backward pass)" on a
 * thread of that.  As much of it as fits.  False, and buf empty, where id has neither.
 */
bool gpc_stack_describe(const struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size);

/*
 * Captures that got no id, and captures of Python threads whose frames could not be read
 * (header.dropped_*).
 */
uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks);
uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks);

#endif
