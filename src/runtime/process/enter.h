/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in and out of the library, around every call that the hooks answer.
 *
 *      ARMED --first CUDA call--> RUNNING --broken, switched off--> PASS
 *                                    '--fork--> the child passes everything to the driver
 *
 * Threads   Any.  enter and leave guard against ourselves: what the driver calls back while we are inside passes.
 * Failure   false: the call is not ours, and goes straight to the driver.
 */
#ifndef GPC_RUNTIME_PROCESS_ENTER_H
#define GPC_RUNTIME_PROCESS_ENTER_H

#include <stdbool.h>

#include "base/thread.h"
#include "driver/cuda_fns.h"

/* What the preload layer lends: the real entry points, and the real loader. */
struct gpc_runtime_loader {
	const struct gpc_cuda_fns *fns;
	void *(*open)(const char *library);                  /* dlopen, local */
	void *(*lookup)(const char *name);                   /* dlsym(RTLD_DEFAULT, name) */
	void *(*lookup_in)(void *library, const char *name); /* dlsym */
};

/*
 * Enters.  True: the call is ours, and gpc_runtime_leave follows.  Starts the library at the first
 * call, for which `loader` is asked; it may return NULL: no driver yet, then the answer is false.
 */
bool gpc_runtime_enter(const struct gpc_runtime_loader *(*loader)(void));
static inline void gpc_runtime_leave(void)
{
	gpc_thread_leave();
}

/*
 * The program called cuInit, for the first time and with success, before anything else: every
 * stream will be seen.
 */
void gpc_runtime_saw_start(void);

#endif
