/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of which some are unknown.
 *
 * Invariant  With an unknown number a sum and a difference are unknown, and a comparison is false.
 * Threads    Pure functions.
 * Failure    None.
 */
#ifndef GPC_WHY_NUMBERS_H
#define GPC_WHY_NUMBERS_H

#include "base/bytes.h"
#include "why/why.h"

/* Others that hold at most 1/SMALL_PART of the GPU are not the cause. */
#define SMALL_PART 20u

#define WASTED_PART 8u /* waste below this part of the GPU is no reason for a failure */
#define REAL_PART   8u /* a real placement wastes this part of what it places */

static inline bool is_known(uint64_t value)
{
	return value != GPUCACHE_UNKNOWN;
}

static inline uint64_t or_none(uint64_t value)
{
	return is_known(value) ? value : 0;
}

static inline uint64_t plus(uint64_t a, uint64_t b)
{
	return gpc_bytes_add(a, b);
}

static inline uint64_t minus(uint64_t a, uint64_t b)
{
	return is_known(a) && is_known(b) ? gpc_bytes_less(a, b) : GPUCACHE_UNKNOWN;
}

static inline bool fits(uint64_t need, uint64_t room)
{
	return is_known(need) && is_known(room) && need <= room;
}

static inline bool is_below(uint64_t a, uint64_t b)
{
	return is_known(a) && is_known(b) && a < b;
}

static inline bool is_part(const struct gpc_facts *f, uint64_t bytes, unsigned part)
{
	return is_known(f->total) && fits(f->total / part, bytes);
}

/* True if other holders' bytes are large enough to count as a cause. */
static inline bool counts(const struct gpc_facts *f, uint64_t bytes)
{
	return is_known(f->total) && is_below(f->total / SMALL_PART, bytes);
}

static inline uint64_t truth(bool value)
{
	return value ? GPC_YES : GPC_NO;
}

/* The request fits into the room and `bytes` more, and without them it does not. */
static inline bool is_missing_from(const struct gpc_facts *f, uint64_t bytes)
{
	return or_none(bytes) && is_below(f->room, f->need) && fits(f->need, plus(f->room, bytes));
}

/* Computes the DERIVED facts from the others (derive.c). */
void gpc_facts_derive(struct gpc_facts *facts);

#endif
