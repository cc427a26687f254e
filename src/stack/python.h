/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, without the GIL and without any call that allocates, locks
 * or waits.
 *
 *   LOOK --> TRIAL --> READY            a look finds CPython's symbols and the layout of its version;
 *    ^  \       \                       the trial walks this thread's frames with reads that cannot fault
 *    +--/        +--> UNUSABLE          and checks every type pointer; from then on frames are read directly
 *
 * Why this is safe.  The only functions called are readers of thread-local data and of flags.  A
 * thread's frames are pushed and popped by that thread alone, and it is here, in our C code.
 * Frames keep their code objects alive, code objects their names and tables, and those never
 * change.
 *
 * Invariants  1 Nothing of Python is read before Py_IsInitialized, after finalisation began, or of
 *               another thread: the thread state must carry this thread's id.
 *             2 A frame whose code is not a code object ends the walk, and the stack is flagged.
 *             3 A frame that Python hides from its own tracebacks is hidden here.
 *             4 What does not fit the expectations yields no frames and GPUCACHE_STACK_NO_PYTHON;
 *               never a guess.
 * Threads     capture: any.  init and fini: one.
 * Locks       Call it with no lock of ours held: a look resolves symbols and takes the loader's
 *             lock.
 * Ordering    Who takes `state` to BUSY owns the fields below it and stores the next state with
 *             release; everybody else loads `state` with acquire and reads them only in TRIAL or
 *             later.
 * Progress    READY: bounded by `max`; known code objects are found without a lock (codes.h).
 * Limits      CPython 3.9 to 3.14; PyPy and others have no frames here.  Only a Python whose
 *             symbols are global is seen, not one opened by RTLD_LOCAL.  A Python loaded later is
 *             found after at most GPC_PYTHON_MAX_WAIT captures.  While there is a second
 *             interpreter, a thread has frames only where it is known which one it runs: from 3.12
 *             on, holding the GIL.  A daemon thread that races the end of the interpreter may read
 *             frames that are being freed, for some 100 ns after the check.
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
 * Looking costs some 10 us in a process with hundreds of libraries, because a name that is nowhere
 * is searched everywhere: the captures between two looks double up to this number.
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
	void *(*get_running_state)(void); /* NULL where it is not per thread */
	int (*is_initialized)(void);
	int (*is_finalizing)(void);
	void *(*get_first_interpreter)(void);
	void *(*get_main_interpreter)(void);
	struct gpc_python_types types;
};

/* is_on false: there will be no Python frames, and nothing is looked for. */
void gpc_python_init(struct gpc_python *python, bool is_on, struct gpc_codes *codes,
	void *(*lookup)(const char *name));

/*
 * Writes at most max Python frames as gpucache_format.h defines them, innermost first, and returns
 * how many. *flags gets GPUCACHE_STACK_NO_PYTHON or GPUCACHE_STACK_CUT added.
 */
uint32_t gpc_python_capture(
	struct gpc_python *python, uint64_t *frames, uint32_t max, uint32_t *flags);

#endif
