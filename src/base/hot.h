/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of the path of a hit: inlined into it, whatever the compiler thinks of its size.  Where checks are on, it is an
 * inline function as any other: such a compiler may leave the constant observer's calls through pointers as they are.
 */
#ifndef GPC_BASE_HOT_H
#define GPC_BASE_HOT_H

#include "base/check.h"

#if GPC_CHECK_LEVEL == 0
#define GPC_HOT static inline __attribute__((always_inline))
#else
#define GPC_HOT static inline
#endif

#endif
