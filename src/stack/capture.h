/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures the calling thread's stack, and returns its 32-bit id.
 *
 *   seen before: trails.h ------------------> id
 *   native frames (unwind.h) --+
 *                              +--> depot.h --> id;  a new stack goes to the sink: STACKS, CODES, MODULES
 *   Python frames (python.h) --+
 *
 * A stack holds its native frames, then its Python frames.  The reader of the recording merges the two lists at the
 * Python frames that were entered from C.
 *
 * Threads     capture and the counts: any.  init and fini: one, before and after all other calls.
 * Locks       Call capture with no lock of ours held: it may take the loader's lock
 *             (unwind.h, modules.h).
 * Failure     Id 0: the tables are full, or neither walk found a frame.  Without libunwind, glibc unwinds; without
 *             any unwinder, stacks have Python frames only.
 * Limits      Each of max_stacks stacks reserves about 370 bytes of address space, and codes.h 4.3 MiB.  Only pages
 *             in use take memory.  A fork child makes a new struct gpc_stacks, because a thread that does not exist in
 *             the child may hold a lock of the old one.  fini takes no lock, so the child may call it.
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
#include "stack/trails.h"
#include "stack/unwind.h"

#define GPC_STACKS_DEPTH GPC_TRAILS_DEPTH /* frames of each kind */

struct gpc_stacks_params {
	struct gpc_stack_sink sink;
	/* libc's dlsym, not a function that interposes it. */
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
	struct gpc_trails trails;
	_Atomic uint64_t n_no_python;
};

/* Fails with GPC_NO_METADATA, and then leaves nothing allocated. */
GPC_MUST_CHECK enum gpc_status gpc_stacks_init(
	struct gpc_stacks *stacks, const struct gpc_stacks_params *params);
void gpc_stacks_fini(struct gpc_stacks *stacks);

/* Returns the id of the calling thread's stack, or 0.  The stack begins in the caller, or `skip` frames further out. */
uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip);

/* Captures whose stack found no room, and captures whose Python frames could not be read (header.dropped_*). */
uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks);
uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks);

#endif
