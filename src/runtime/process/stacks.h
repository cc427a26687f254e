/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stack.
 *
 * Threads   Any; no lock may be held.
 * Failure   0: no stack.
 */
#ifndef GPC_RUNTIME_PROCESS_STACKS_H
#define GPC_RUNTIME_PROCESS_STACKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Capture the caller's stack as configured: for a driver call, and for a request of the cache of `size`
 * bytes, which may be sampled.
 */
uint32_t gpc_runtime_stack(void);
uint32_t gpc_runtime_stack_of(size_t size);

#endif
