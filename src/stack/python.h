/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, without the GIL and without any call that allocates, locks
 * or waits.
 *
 *   LOOK --> TRIAL --> READY            LOOK finds CPython's symbols and the layout of its version;
 *    ^  \       \                       TRIAL walks this thread's frames with reads that cannot fault, and
 *    +--/        +--> UNUSABLE          checks every type pointer; from then on frames are read directly
 *
 * Why this is safe.  We call only functions that read thread-local data and flags.  Only the thread
 * itself pushes and pops its frames, and it is in our C code now.  Frames keep their code objects alive,
 * and code objects their names and tables, which never change.
 *
 * Invariants  1 Python memory is read only between Py_IsInitialized and finalization, and only of this
 *               thread: the thread state must carry its id.
 *             2 A frame whose code is not a code object ends the walk, and the stack is flagged.
 *             3 Frames that Python hides from its own tracebacks are skipped.
 *             4 If Python cannot be read (unusable, finalizing, or a thread state that is not this
 *               thread's), there are no frames, and GPUCACHE_STACK_NO_PYTHON: never a guess.
 * Threads     capture: any.  init and fini: one.
 * Locks       capture: with no lock of ours held: in LOOK it resolves symbols, which takes the loader's
 *             lock.
 * Ordering    The thread that sets `state` to BUSY owns the fields below it, and stores the next state
 *             with release; others load `state` with acquire and read the fields only in TRIAL or later.
 * Progress    READY: bounded by `max`; known code objects are found without a lock (codes.h).
 * Limits      CPython 3.9 to 3.14, not PyPy.  Its symbols must be global, not opened by RTLD_LOCAL.  A
 *             Python loaded later is found after at most GPC_PYTHON_MAX_WAIT captures.  With
 *             subinterpreters, a thread has frames only if the running thread state is known: from 3.12 on,
 *             while it holds the GIL.  A daemon thread that races the end of the interpreter may read frames that are
 *             being freed, for some 100 ns after the check.
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
 * A lookup that fails costs some 10 us in a process with hundreds of libraries: the number of captures
 * between two attempts doubles up to this number.
 */
#define GPC_PYTHON_MAX_WAIT 4096u

enum gpc_python_state {
	GPC_PYTHON_OFF,
	GPC_PYTHON_LOOK,
	GPC_PYTHON_BUSY, /* another thread looks or tries */
	GPC_PYTHON_TRIAL,
	GPC_PYTHON_READY,
	GPC_PYTHON_UNUSABLE,
};

struct gpc_python {
	struct gpc_codes *codes;
	void *(*lookup)(const char *name); /* dlsym(RTLD_DEFAULT, name) */

	_Atomic uint32_t state; /* enum gpc_python_state */
	_Atomic uint32_t n_waited;
	_Atomic uint32_t wait;

	/* Written while BUSY, read after. */
	struct gpc_python_layout layout;
	void *(*get_thread_state)(void);
	void *(*get_running_state)(void); /* NULL up to 3.11, where it is not per thread */
	int (*is_initialized)(void);
	int (*is_finalizing)(void);
	void *(*get_first_interpreter)(void);
	void *(*get_main_interpreter)(void);
	struct gpc_python_types types;
};

/* is_on false: captures no Python frames, and looks for no Python. */
void gpc_python_init(struct gpc_python *python, bool is_on, struct gpc_codes *codes,
	void *(*lookup)(const char *name));

/*
 * Writes at most max Python frames as defined in gpucache_format.h, innermost first, and returns their
 * number.  Adds GPUCACHE_STACK_NO_PYTHON or GPUCACHE_STACK_CUT to *flags.
 */
uint32_t gpc_python_capture(
	struct gpc_python *python, uint64_t *frames, uint32_t max, uint32_t *flags);

#endif
