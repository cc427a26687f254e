/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlclose, which may unload code whose addresses are in recorded stacks, and make room for other code (stack/modules.h).
 *
 * Our dlclose calls the next one between two counts.  Unlike dlopen, dlclose does not depend on which library calls it,
 * so the call needs no jump.  It may run before we are started, in a process that never uses CUDA, and in the destructor of
 * a library that is being unloaded.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "preload/real.h"
#include "runtime/process/stacks.h"

EXPORT int dlclose(void *handle);

int dlclose(void *handle)
{
	static _Atomic(int (*)(void *)) found;
	int (*next)(void *) = atomic_load_explicit(&found, memory_order_relaxed);

	if (!next) {
		*(void **)(void *)&next = gpc_real_dlsym_call(RTLD_NEXT, "dlclose");
		atomic_store_explicit(&found, next, memory_order_relaxed);
	}
	return next ? gpc_runtime_unload(next, handle) : -1;
}
