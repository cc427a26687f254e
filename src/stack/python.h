/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, read without the GIL, and without a call that allocates, locks or waits.
 *
 *   LOOK --> TRIAL --> READY            LOOK finds CPython's symbols and the layout of its version.
 *     \        \                        TRIAL walks this thread's frames with reads that cannot fault, and
 *      +--------+---> UNUSABLE          checks every type pointer.  In READY, frames are read directly.
 *
 * LOOK is repeated until Python is loaded and initialized, TRIAL until a thread with Python frames captures.  A global
 * lookup that finds Python makes the loader keep it for our library, which is never unloaded: so what LOOK found stays.
 *
 * Why this is safe.  A capture in READY calls only functions of Python that read thread-local or global variables.
 * Only the thread itself pushes and pops its frames, and the thread is in our C code now.  A frame keeps its code
 * object alive, and a code object keeps its names and tables alive, which never change.
 *
 * Invariants  1 Python's memory is read only between Py_IsInitialized and finalization, and only through a thread
 *               state that carries this thread's id.
 *             2 A frame whose code is not a code object ends the walk, and the stack is flagged.
 *             3 Frames that Python hides from its own tracebacks are skipped.
 *             4 If Python cannot be read (UNUSABLE, finalizing, or another thread's state), the stack has no Python
 *               frames, and is flagged GPUCACHE_STACK_NO_PYTHON.
 * Threads     capture: any.  init: one.
 * Locks       Call capture with no lock of ours held: in LOOK it resolves symbols, and so takes the loader's lock.
 * Ordering    The thread that sets `state` to BUSY owns the members below `state`, and stores the next state with
 *             release.  Other threads load `state` with acquire, and read those members only in TRIAL or READY.
 * Progress    READY: bounded by MAX_LINKS of python.c; known code objects are found without a lock (codes.h).
 * Limits      CPython 3.9 to 3.14, not PyPy.  Its symbols must be global: a Python opened with RTLD_LOCAL is not seen.
 *             A Python loaded later is found after at most GPC_PYTHON_MAX_WAIT captures.  With subinterpreters, a
 *             stack has Python frames only from 3.12 on, and while its thread holds the GIL: only then Python tells
 *             which thread state runs on the thread.
 *             If a daemon thread captures while the interpreter ends, it may read frames that are being freed, for some
 *             100 ns after the check of finalization.
 */
#ifndef GPC_STACK_PYTHON_H
#define GPC_STACK_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack/codes.h"
#include "stack/probe.h"
#include "stack/python_code.h"
#include "stack/python_layout.h"

/*
 * A lookup of Python that fails takes some 10 us in a process with hundreds of libraries.  So the number of captures
 * between two lookups doubles, up to this number.
 */
#define GPC_PYTHON_MAX_WAIT 4096u

enum gpc_python_state {
	GPC_PYTHON_OFF,
	GPC_PYTHON_LOOK,
	GPC_PYTHON_BUSY, /* a thread is in LOOK or TRIAL */
	GPC_PYTHON_TRIAL,
	GPC_PYTHON_READY,
	GPC_PYTHON_UNUSABLE,
};

struct gpc_python {
	struct gpc_codes *codes;
	void *(*lookup_in)(void *handle, const char *name); /* dlsym */

	_Atomic bool
		has_seen_others; /* a subinterpreter, which numbers its code objects as the others do */
	_Atomic uint32_t n_waited; /* captures since the last lookup */
	_Atomic uint32_t wait;     /* captures between two lookups */
	_Atomic uint32_t state;    /* enum gpc_python_state */

	/* Written by the thread that set BUSY, read in TRIAL and READY. */
	struct gpc_python_layout layout;
	void *(*get_thread_state)(void);
	/* The state that runs on this thread.  NULL up to 3.11, which tells only the state that holds the GIL. */
	void *(*get_running_state)(void);
	int (*is_initialized)(void);
	int (*is_finalizing)(void);
	void *(*get_first_interpreter)(void);
	void *(*get_main_interpreter)(void);
	struct gpc_python_types types;
};

/* Where this thread's frames begin: its state, the innermost frame, and its instruction; all 0: it has no frames. */
struct gpc_python_top {
	uintptr_t thread;
	uintptr_t frame;
	uintptr_t instruction;
};

/* A frame of the interpreter's list, with all that a walk reads of it. */
struct gpc_python_link {
	_Atomic uint64_t at;
	_Atomic uint64_t code;
	_Atomic uint64_t fingerprint; /* of the code object; 0: the frame is a shim */
	_Atomic uint32_t instruction; /* from the code object on */
	_Atomic uint32_t kind;
};

/* What a walk of the frames of this thread reads. */
#define GPC_PYTHON_TRAIL_LINKS 48u

struct gpc_python_trail {
	_Atomic uint64_t thread;
	_Atomic uint32_t n;
	_Atomic bool is_cut; /* the walk went no further than the last link */
	struct gpc_python_link links[GPC_PYTHON_TRAIL_LINKS];
};

/* is_on false: captures no Python frames, and looks for no Python. */
void gpc_python_init(struct gpc_python *python, bool is_on, struct gpc_codes *codes,
	void *(*lookup_in)(void *handle, const char *name));

/*
 * Writes at most max Python frames, innermost first, encoded as in gpucache_format.h, and returns their number.  Adds
 * GPUCACHE_STACK_NO_PYTHON or GPUCACHE_STACK_CUT to *flags.
 */
uint32_t gpc_python_capture(
	struct gpc_python *python, uint64_t *frames, uint32_t max, uint32_t *flags);

/* Finds the top.  False: only gpc_python_capture can say what frames there are. */
bool gpc_python_find_top(struct gpc_python *python, struct gpc_python_top *ret_top);

/* Writes what a walk for at most max frames reads.  False: too many links, or a frame that cannot be read. */
bool gpc_python_trace(const struct gpc_python *python, const struct gpc_python_top *top,
	uint32_t max, struct gpc_python_trail *trail);

/* True if a walk from the top would read what the trail has.  The trail may be changing meanwhile. */
bool gpc_python_follows(const struct gpc_python *python, const struct gpc_python_top *top,
	const struct gpc_python_trail *trail);

#endif
