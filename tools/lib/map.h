/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps keys to numbers: uthash.
 *
 * Threads   One.
 * Failure   None: without memory the program ends (format/memory.h).
 */
#ifndef GPC_LIB_MAP_H
#define GPC_LIB_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_map_row;

/* An all-zero map is empty. */
struct gpc_map {
	struct gpc_map_row *rows;
	size_t n;
};

void gpc_map_fini(struct gpc_map *map);

/* Returns where the number of `key` is stored until gpc_map_fini: 0 for a new key. */
uint64_t *gpc_map_at(struct gpc_map *map, uint64_t key);

/* The same with a hash of the text as key.  Two texts of the same hash would be one. */
uint64_t *gpc_map_of(struct gpc_map *map, const char *text);

/* Returns the number of a text.  Texts get numbers from 0 in the order of first use. */
size_t gpc_map_number(struct gpc_map *map, const char *text, bool *ret_is_new);

#endif
