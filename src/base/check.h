/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of our own invariants.
 *
 * In the debug variants a failed check reports its place and aborts.  A release never ends or hangs the
 * host process: it logs one line, once, and marks the library broken; the hooks then pass every call to
 * the driver.
 *
 *   GPC_ASSERT(x)   always on; cheap conditions
 *   GPC_CHECK(x)    on at GPC_CHECK_LEVEL >= 1
 */
#ifndef GPC_BASE_CHECK_H
#define GPC_BASE_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>

#ifndef GPC_CHECK_LEVEL
#define GPC_CHECK_LEVEL 0
#endif

/* Reports the failed condition; aborts if GPC_CHECK_LEVEL >= 1, else marks the library broken. */
void gpc_check_failed(const char *condition, const char *file, int line);

extern atomic_bool gpc_broken __attribute__((visibility("hidden")));

/* Returns true once any check has failed.  Every hook calls this first. */
static inline bool gpc_is_broken(void)
{
	return atomic_load_explicit(&gpc_broken, memory_order_relaxed);
}

#define GPC_ASSERT(x)                                             \
	do {                                                      \
		if (__builtin_expect(!(x), 0))                    \
			gpc_check_failed(#x, __FILE__, __LINE__); \
	} while (0)

#if GPC_CHECK_LEVEL >= 1
#define GPC_CHECK(x) GPC_ASSERT(x)
#else
#define GPC_CHECK(x) ((void)sizeof(!(x)))
#endif

#endif
