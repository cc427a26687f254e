/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's life in the process: its start, the entry and exit around every hooked call, and its end.
 *
 *      ARMED --first CUDA call--> RUNNING --broken, switched off--> PASS
 *                                    '--fork--> the child passes every call to the driver
 *
 * Threads   Any.  The driver may call functions that we hook while a thread is inside: those calls go to the driver.
 */
#ifndef GPC_RUNTIME_PROCESS_ENTER_H
#define GPC_RUNTIME_PROCESS_ENTER_H

#include <stdbool.h>

#include "base/thread.h"
#include "driver/cuda_fns.h"

/* Supplied by the preload layer: the real entry points, and the real loader. */
struct gpc_runtime_loader {
	const struct gpc_cuda_fns *fns;
	void *(*open)(const char *library);                  /* dlopen, local */
	void *(*lookup)(const char *name);                   /* dlsym(RTLD_DEFAULT, name) */
	void *(*lookup_in)(void *library, const char *name); /* dlsym */
};

/*
 * Enters the library.  True: handle the call here, then call gpc_runtime_leave.  False: pass the call to the driver.
 * The first call starts the library with the result of `loader`.  If that is NULL, there is no driver yet, and a later
 * call tries again.
 */
bool gpc_runtime_enter(const struct gpc_runtime_loader *(*loader)(void));
static inline void gpc_runtime_leave(void)
{
	gpc_thread_leave();
}

/* Call if the program's first call was a successful cuInit: then we see the creation of every stream. */
void gpc_runtime_saw_start(void);

/*
 * Sets up configuration, recording and devices; enter.c calls it, in one thread.  False: the library passes every call
 * to the driver from now on.
 */
bool gpc_runtime_start(void);

/*
 * The end of the process.  At a regular exit the first one reads the devices once more, reports leaks and fatal
 * failures, and closes the recording.  The other one only closes the recording: for _exit and quick_exit, which run no
 * handlers.  It is async-signal-safe, and does nothing in a child of fork or vfork.  The recording of a process that
 * calls neither reads as that of a killed process.
 */
void gpc_runtime_at_exit(void);
void gpc_runtime_at_exit_without_handlers(void);

#endif
