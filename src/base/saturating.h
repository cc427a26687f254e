/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saturating arithmetic, for numbers from untrusted input: bytes, counts, times, file offsets.  Also the larger,
 * the smaller and the distance of two numbers.
 *
 * A result that overflows is clamped, so hostile numbers cause neither wrap-around nor undefined behaviour.
 *
 * Threads   Pure functions.
 */
#ifndef GPC_BASE_SATURATING_H
#define GPC_BASE_SATURATING_H

#include <stdint.h>

/* a + b, at most UINT64_MAX.  UINT64_MAX also means unknown: an unknown summand makes the sum unknown. */
static inline uint64_t gpc_bytes_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a - b, at least 0. */
static inline uint64_t gpc_bytes_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b, at most UINT64_MAX. */
static inline uint64_t gpc_bytes_times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t gpc_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t gpc_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The absolute difference of a and b. */
static inline uint64_t gpc_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* An unsigned count as a signed number, at most INT64_MAX. */
static inline int64_t gpc_signed_of(uint64_t a)
{
	return a > INT64_MAX ? INT64_MAX : (int64_t)a;
}

/* a + b, clamped to int64_t. */
static inline int64_t gpc_signed_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* a - b, clamped to int64_t. */
static inline int64_t gpc_signed_less(int64_t a, int64_t b)
{
	int64_t difference;

	return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN)
							 : difference;
}

#endif
