/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on the fields of struct gpucache_counters: one writer at a time, which holds the pool's lock,
 * and readers in other threads and processes at any time.
 *
 * An addition is a relaxed load and a relaxed store, without a locked instruction.
 *
 * Threads   The caller serializes writers of one record; readers need nothing.
 * Limits    Readers may see an operation half done, never a torn number.
 */
#ifndef GPC_STATS_COUNTERS_H
#define GPC_STATS_COUNTERS_H

#include <stdint.h>

#include "gpucache_format.h"

static inline uint64_t gpc_counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void gpc_counter_set(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static inline void gpc_counter_add(uint64_t *counter, uint64_t n)
{
	gpc_counter_set(counter, gpc_counter_get(counter) + n);
}

static inline void gpc_counter_sub(uint64_t *counter, uint64_t n)
{
	gpc_counter_set(counter, gpc_counter_get(counter) - n);
}

static inline void gpc_counter_raise(uint64_t *peak, uint64_t value)
{
	if (value > gpc_counter_get(peak))
		gpc_counter_set(peak, value);
}

/* Adds `n`, and raises `peak` to the sum if that is higher. */
static inline void gpc_counter_add_peak(uint64_t *counter, uint64_t *peak, uint64_t n)
{
	gpc_counter_add(counter, n);
	gpc_counter_raise(peak, gpc_counter_get(counter));
}

#endif
