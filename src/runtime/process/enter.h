/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry to and exit from the library, around every hooked call.
 *
 *      ARMED --first CUDA call--> STARTING ----> RUNNING       the library handles calls, unless it is broken,
 *                                    |                          or in a child after fork
 *                                    '--off, no GPU--> PASS    every call goes to the driver
 *
 * Threads   Any.  Not reentrant by design: calls that the driver makes while we are inside go to the driver.
 * Failure   false: the call goes straight to the driver.
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
	void *(*lookup_in)(void *library, const char *name); /* dlsym */
};

/*
 * Enters the library.  True: handle the call, then call gpc_runtime_leave.  False: pass the call to the driver.
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

#endif
