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

#define GPC_PJRT_NAME "GetPjrtApi"

/* Returns ours for the GetPjrtApi of a plugin for CUDA, else `pointer` itself. */
void *gpc_pjrt_exchange(void *pointer);

/* True if a request from this return address is of XLA's pool, of which arrays are cut that we are told of. */
bool gpc_pjrt_is_pool(const void *caller, size_t size);

#endif
