/* SPDX-License-Identifier: Apache-2.0 */
/* The append-only regions STACKS, CODES, MODULES, TAGS and TEXT. */
#include <string.h>

#include "record/record.h"

static bool append_locked(
	struct gpc_record *rec, enum gpucache_region_kind kind, const void *data, size_t size)
{
	const struct gpucache_region *region = rec->regions[kind];
	struct gpucache_append_head *head = (void *)(rec->base + region->offset);
	unsigned char *record = (unsigned char *)(head + 1) + head->used;
	const bool is_line = kind == GPUCACHE_REGION_TEXT;
	uint64_t room = region->count - head->used;
	uint64_t padded = is_line ? size + 1 : gpc_round_up(size, 8);

	/* Two tests, because `padded` overflows for a size near SIZE_MAX. */
	if (size > room || padded > room) {
		__atomic_store_n(&head->n_dropped, head->n_dropped + 1, __ATOMIC_RELAXED);
		return false;
	}
	memcpy(record, data, size);
	memset(record + size, is_line ? '\n' : 0, padded - size);
	__atomic_store_n(&head->used, head->used + padded, __ATOMIC_RELEASE);
	__atomic_store_n(&head->n_records, head->n_records + 1, __ATOMIC_RELEASE);
	gpc_record_mark_page(rec, head);
	if (padded)
		gpc_record_mark(rec, record, padded);
	return true;
}

bool gpc_record_append(
	struct gpc_record *rec, enum gpucache_region_kind kind, const void *data, size_t size)
{
	bool is_done;

	if ((unsigned)kind >= GPUCACHE_REGION_COUNT || !rec->regions[kind] ||
		rec->regions[kind]->record_size != 1)
		return false;
	gpc_lock_take(&rec->lock);
	is_done = append_locked(rec, kind, data, size);
	gpc_lock_release(&rec->lock);
	return is_done;
}

bool gpc_record_append_line(struct gpc_record *rec, const char *line)
{
	return gpc_record_append(rec, GPUCACHE_REGION_TEXT, line, strlen(line));
}
