/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers that have a cache of their own, recognised by their code.  With cache:auto they get exact segments
 * (alloc/pool_exact.c), and all others are cached.
 *
 *      cuMemAlloc <- libcudart.so <- libc10_cuda.so      PyTorch
 *      cuMemAlloc <- xla_cuda_plugin.so                  XLA: its runtime is linked statically
 *      cuMemAlloc <- libcudart.so <- libnccl.so          unknown, whoever called NCCL
 *
 * The caller is the innermost frame that is not on the way to the driver: the runtime library, the driver and we are.  The
 * stack says so for every kind of linkage, by a walk of a few frames, and nothing else must be intercepted.  The walk is
 * made only for a request of 2 MiB or more, in a process that has loaded such a caller, and once for each stack if
 * stacks are recorded.  The loader's list is looked at when such a request comes from a stack that is new: code that was
 * just loaded has no other.  What a caller is called and by which variable it is told to have no cache is a table in callers.c.
 *
 * A wrong answer costs the program some calls of the driver, or the device some memory, and never correctness: what a
 * segment is depends on the request that it was taken for, and a free finds it by its address.  So the places of modules are
 * read without a lock: who asks while they change is unknown, and code in the place of an unloaded module is taken for it
 * until the next look.
 *
 * Threads     Any; the caller holds no lock of ours: the loader's may be taken.
 * Failure     Without an unwinder, and in a stack that it cannot walk, every caller is unknown.
 * Limits      The first GPC_CALLER_PLACES modules that matter count.  With stacks:off, a caller that was loaded since the last
 *             segment was taken is unknown until the next one is.
 */
#ifndef GPC_RUNTIME_PROCESS_CALLERS_H
#define GPC_RUNTIME_PROCESS_CALLERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/size_class.h"

#define GPC_CALLER_PLACES 24u

/* What a request must exceed to be looked at closer: two loads, and only if it is large. */
struct gpc_callers {
	_Atomic uint32_t n;      /* loaded modules that have a cache of their own */
	_Atomic uint32_t newest; /* of the stacks asked about; UINT32_MAX without cache:auto */
};
extern struct gpc_callers gpc_callers __attribute__((visibility("hidden")));

/* Call once at the start, after the stacks: reads the environment, and looks for the first time. */
void gpc_callers_start(void);

/* Looks for modules that were loaded or unloaded since the last look.  No-op without cache:auto and spill. */
void gpc_callers_look(void);

/* Use gpc_caller_has_cache. */
bool gpc_caller_ask(uint32_t stack);

/* As gpc_caller_has_cache, for a request of any size and in every mode of the cache, if `spill` is set.  Walks the stack. */
bool gpc_caller_is_caching(void);

/* True if the caller of the hook that asks for `size` bytes has a cache of its own; `stack` is its number, or 0. */
static inline bool gpc_caller_has_cache(size_t size, uint32_t stack)
{
	return __builtin_expect(
		       size >= GPC_SEGMENT_ALIGN &&
			       (atomic_load_explicit(&gpc_callers.n, memory_order_relaxed) ||
				       stack > atomic_load_explicit(
						       &gpc_callers.newest, memory_order_relaxed)),
		       0) &&
	       gpc_caller_ask(stack);
}

#endif
