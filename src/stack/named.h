/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of this process's stacks with their names, for the few texts that are written when a request fails.
 * gpumem-report names all other stacks.
 *
 *      stack id --> depot.h --> native frames: modules.h, exported.h, symtab.h, linetab.h --+
 *                               Python frames: codes.h -------------------------------------+--> names/frames.h
 *
 * Native frames are named up to the call site and its callers, or up to the interpreter's, and if no frame is the program's,
 * also from what called the interpreter on.
 *
 * Threads     open, and all calls for what it returned: one thread at a time.
 * Locks       Call with no lock of ours held: all take the loader's lock (modules.h).
 * Failure     NULL: no memory, no room left for more frames, or no such stack.
 * Limits      GPC_NAMING_BYTES are mapped until close, of which only pages in use take memory.  Of interpreters only
 *             CPython's frames are left out.
 */
#ifndef GPC_STACK_NAMED_H
#define GPC_STACK_NAMED_H

#include <stdbool.h>
#include <stdint.h>

#include "names/frames.h"
#include "stack/capture.h"

#define GPC_NAMING_BYTES (16u << 20)

struct gpc_naming;

struct gpc_naming *gpc_naming_open(struct gpc_stacks *stacks);
void gpc_naming_close(struct gpc_naming *naming); /* NULL: no-op */

/*
 * Says that `find` will be asked for this stack.  All that are expected are named in one pass over the symbols, at the next
 * find; a pass takes some ten milliseconds with PyTorch.
 */
void gpc_naming_expect(struct gpc_naming *naming, uint32_t id);

/* The frames of a stack, which stay until close. */
const struct gpc_stack_frames *gpc_naming_find(struct gpc_naming *naming, uint32_t id);

/* Appends the call site of a stack, as much of it as fits (gpc_frames_fit).  False: no frame can be named. */
bool gpc_naming_describe(
	struct gpc_naming *naming, uint32_t id, bool has_via, struct gpc_text *text);

/* The same for a single stack; buf becomes "" if no frame can be named. */
bool gpc_stack_describe(struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size);

#endif
