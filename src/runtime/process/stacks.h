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
 * The stack of the caller, as the configuration wants it: for a driver call, which costs more, and
 * for a request of the cache, where small ones may be sampled.
 */
uint32_t gpc_runtime_stack(void);
uint32_t gpc_runtime_stack_of(size_t size);

#endif
