/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on numbers that somebody else wrote: bytes, counts, times and offsets of a file.
 *
 * A result that does not fit is the nearest one that does, so that a hostile number makes a sum too
 * small or too large, and never a small one of two large ones, a negative one or undefined behaviour.
 *
 * Threads   Pure functions.
 */
#ifndef GPC_BASE_SATURATING_H
#define GPC_BASE_SATURATING_H

#include <stdint.h>

/* a + b, or UINT64_MAX where that passes it.  An unknown summand makes an unknown sum. */
static inline uint64_t gpc_bytes_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a - b, or 0 where that is below it. */
static inline uint64_t gpc_bytes_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b, or UINT64_MAX where that passes it. */
static inline uint64_t gpc_bytes_times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* A count as a change of one: up to INT64_MAX. */
static inline int64_t gpc_signed_of(uint64_t a)
{
	return a > INT64_MAX ? INT64_MAX : (int64_t)a;
}

/* a + b, or INT64_MIN or INT64_MAX where that passes them. */
static inline int64_t gpc_signed_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* a - b, with the same ends. */
static inline int64_t gpc_signed_less(int64_t a, int64_t b)
{
	int64_t difference;

	return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN)
							 : difference;
}

#endif
