/* SPDX-License-Identifier: Apache-2.0 */
/* A row per key, which uthash finds. */
#include "tools/lib/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tools/lib/table.h"

struct gpc_map_row {
	uint64_t key;
	uint64_t number;
	UT_hash_handle hh;
};

uint64_t *gpc_map_at(struct gpc_map *map, uint64_t key)
{
	struct gpc_map_row *row;

	HASH_FIND(hh, map->rows, &key, sizeof key, row);
	if (!row) {
		row = gpc_new(1, sizeof *row);
		row->key = key;
		HASH_ADD(hh, map->rows, key, sizeof key, row);
		map->n++;
	}
	return &row->number;
}

uint64_t *gpc_map_of(struct gpc_map *map, const char *text)
{
	return gpc_map_at(map, gpc_hash_bytes(GPC_HASH_START, text, strlen(text)));
}

size_t gpc_map_number(struct gpc_map *map, const char *text, bool *ret_is_new)
{
	uint64_t *number = gpc_map_of(map, text);

	*ret_is_new = !*number;
	if (!*number)
		*number = map->n;
	return (size_t)*number - 1;
}

void gpc_map_fini(struct gpc_map *map)
{
	struct gpc_map_row *row, *next;

	HASH_ITER (hh, map->rows, row, next) {
		HASH_DEL(map->rows, row);
		free(row);
	}
	*map = (struct gpc_map){ 0 };
}
