/* SPDX-License-Identifier: Apache-2.0 */
/* Access to what trails keep: a thread may read while another writes, and tells by a number that it loads last (trails.h). */
#ifndef GPC_STACK_TRAIL_H
#define GPC_STACK_TRAIL_H

#include <stdatomic.h>

#define trail_load(field)         atomic_load_explicit(field, memory_order_acquire)
#define trail_store(field, value) atomic_store_explicit(field, value, memory_order_release)

#endif
