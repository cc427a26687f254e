/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Areas of addresses that do not overlap, sorted: a binary search finds the one around an address.
 *
 * Threads   One.
 * Failure   None: without memory the program ends (format/memory.h).
 */
#ifndef GPC_REPLAY_AREAS_H
#define GPC_REPLAY_AREAS_H

#include <stdbool.h>
#include <string.h>

#include "format/array.h"

struct gpc_area {
	uint64_t address;
	uint64_t size;
	size_t event; /* the owner's */
	bool is_marked;
};

/* All zeros: none; free() the rows at the end. */
struct gpc_areas {
	struct gpc_area *rows; /* by address */
	size_t n;
	size_t room;
};

static inline size_t gpc_areas_up_to(const struct gpc_areas *areas, uint64_t address)
{
	return GPC_ARRAY_COUNT(areas->n, i, areas->rows[i].address <= address);
}

/* The area that contains the address, until the next one is added or removed; NULL: none does. */
static inline struct gpc_area *gpc_areas_around(const struct gpc_areas *areas, uint64_t address)
{
	size_t i = gpc_areas_up_to(areas, address);

	if (i == 0 || address - areas->rows[i - 1].address >= areas->rows[i - 1].size)
		return NULL;
	return &areas->rows[i - 1];
}

static inline void gpc_areas_add(struct gpc_areas *areas, struct gpc_area area)
{
	size_t at = gpc_areas_up_to(areas, area.address);

	gpc_array_grow(&areas->rows, sizeof area, areas->n, &areas->room);
	memmove(&areas->rows[at + 1], &areas->rows[at], (areas->n - at) * sizeof area);
	areas->rows[at] = area;
	areas->n++;
}

#endif
