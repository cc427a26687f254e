/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the path of a hit: inlined into it, whatever the compiler thinks of its size. */
#ifndef GPC_BASE_HOT_H
#define GPC_BASE_HOT_H

#define GPC_HOT static inline __attribute__((always_inline))

#endif
