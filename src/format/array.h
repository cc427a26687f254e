/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the tools: growth by doubling, comparison for qsort, and binary search. */
#ifndef GPC_FORMAT_ARRAY_H
#define GPC_FORMAT_ARRAY_H

#include <stdint.h>

#include "format/memory.h"

/* Makes room for n + 1 items.  `items` is the address of the pointer to the array, *room the items that fit. */
static inline void gpc_array_grow(void *items, size_t item_size, size_t n, size_t *room)
{
	if (n < *room)
		return;
	*room = *room ? 2 * *room : 64;
	*(void **)items = gpc_resize(*(void **)items, *room, item_size);
}

/* Compares two numbers for qsort, ascending; GPC_ORDER(b, a) sorts descending.  Several keys are chained by ?:. */
#define GPC_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Compares two uint64_t for qsort, ascending. */
static inline int gpc_array_by_number(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return GPC_ORDER(a, b);
}

/* The number of leading items that meet `condition`, an expression in `i`; no later item may meet it.  O(log n). */
#define GPC_ARRAY_COUNT(n, i, condition)                      \
	({                                                    \
		size_t low_ = 0;                              \
		size_t high_ = (n);                           \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
			if (condition)                        \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})

#endif
