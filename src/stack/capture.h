/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures the calling thread's stack as a 32-bit id.
 *
 *   native frames (unwind.h) --+
 *                              +--> depot.h --> id;  a new stack goes to the sink: STACKS, CODES, MODULES
 *   Python frames (python.h) --+
 *
 * Both kinds are stored side by side; the reader of the recording merges them at the Python frames that
 * were entered from C.
 *
 * Threads     capture, describe and the counts: any.  init and fini: one, before and after all
 *             others.
 * Locks       capture and describe: never with a lock of ours held; both may ask the loader
 *             (unwind.h, modules.h).
 * Failure     Id 0, no stack: no room, or nothing could be unwound.  Degrades part by part: without
 *             libunwind, glibc's unwinder; without an unwinder, Python frames only.
 * Limits      Memory is bounded by max_stacks (about 370 bytes of address space each) and codes.h
 *             (4.5 MiB); unused pages are never touched.  A fork child makes a new struct gpc_stacks,
 *             because a thread that no longer exists may hold a lock of the old one.  fini takes no lock,
 *             so the child may call it.
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

#define GPC_STACKS_DEPTH 64u /* frames of each kind */

struct gpc_stacks_params {
	struct gpc_stack_sink sink;
	/*
	 * The real dlsym(RTLD_DEFAULT, name) and dlsym(handle, name), whatever interposes dlsym.
	 */
	void *(*lookup)(const char *name);
	void *(*lookup_in)(void *handle, const char *name);
	uint32_t max_stacks;
	bool with_python;
};

struct gpc_stacks {
	struct gpc_unwind unwind;
	struct gpc_python python;
	struct gpc_codes codes;
	struct gpc_depot depot;
	struct gpc_modules modules;
	_Atomic uint64_t n_no_python;
};

/* Fails with GPC_NO_METADATA; then nothing stays allocated. */
GPC_MUST_CHECK enum gpc_status gpc_stacks_init(
	struct gpc_stacks *stacks, const struct gpc_stacks_params *params);
void gpc_stacks_fini(struct gpc_stacks *stacks);

/*
 * Returns the id of the calling thread's stack, or 0.  With skip 0 it begins in the caller.
 */
uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip);

/*
 * Writes one line for messages: the innermost Python frame of the program (model/libraries.h), the library
 * function it called, and the program's callers, with line numbers in the same file: "grow train.py:41, via
 * empty < step:60 < fit"; the innermost frame if all are libraries'.  Without Python, native frames by the
 * same rule: "function < caller (module)"; in PyTorch's backward pass "AddmmBackward0 (backward pass)".
 * Truncated to fit.  Returns false, with buf empty, if no frame of the stack can be named.
 */
bool gpc_stack_describe(const struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size);

/*
 * The number of captures whose stack found no room, and of captures whose Python frames could not be read
 * (header.dropped_*).
 */
uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks);
uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks);

#endif
