/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stack, as its number in the recording.
 *
 * Threads   Any; the caller holds no lock, because a walk may fault pages in.
 * Failure   0: no stack, because stacks are off, the sampler left the request out, or a table is full.
 */
#ifndef GPC_RUNTIME_PROCESS_STACKS_H
#define GPC_RUNTIME_PROCESS_STACKS_H

#include <stddef.h>
#include <stdint.h>

struct gpc_request;

/*
 * Capture the caller's stack as configured.  gpc_runtime_stack_of is for a request of `size` bytes from the cache, of
 * which only a sample may have stacks.  gpc_runtime_request describes a request of `size` bytes that goes to the
 * driver: now, of this thread, always with its stack.
 */
uint32_t gpc_runtime_stack_of(size_t size);
struct gpc_request gpc_runtime_request(uint64_t size);

/* As gpc_runtime_stack_of, of several requests of one call: a walk serves all that are to have a stack.  *shared: 0 first. */
uint32_t gpc_runtime_stack_of_one(size_t size, uint32_t *shared);

/* Calls close(handle), the next dlclose, so that stacks taken later tell code that it unloads from code in its place. */
int gpc_runtime_unload(int (*close)(void *handle), void *handle);

#endif
