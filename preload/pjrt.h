/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA's plugins: hands out a table of functions of which some are ours (hooks_pjrt.c).
 *
 * Threads   Any.
 * Failure   The plugin's own function, if there is nothing to intercept.
 */
#ifndef GPC_PRELOAD_PJRT_H
#define GPC_PRELOAD_PJRT_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/pjrt_books.h"

#define GPC_PJRT_NAME "GetPjrtApi"

/* Returns ours for the GetPjrtApi of a plugin for CUDA, else `pointer` itself. */
void *gpc_pjrt_exchange(void *pointer);

/*
 * True if a request from this return address is of XLA's pool, of which arrays are cut that we are told of: for plain
 * memory by the variable that chooses the allocator, for physical memory always.
 */
bool gpc_pjrt_asks_for_pool(const void *caller, size_t size);
bool gpc_pjrt_is_asking(const void *caller, size_t size);

/* The same for any program: every request comes this way, and a call into another file costs the hit 38 instructions. */
static inline bool gpc_pjrt_is_pool(const void *caller, size_t size)
{
	return __builtin_expect(gpc_pjrt_is_there(), 0) && gpc_pjrt_asks_for_pool(caller, size);
}

static inline bool gpc_pjrt_is_physical_pool(const void *caller, size_t size)
{
	return gpc_pjrt_is_there() && gpc_pjrt_is_asking(caller, size);
}

#endif
