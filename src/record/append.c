/* SPDX-License-Identifier: Apache-2.0 */
/* The append-only regions: STACKS, CODES, MODULES, TAGS, TEXT. */
#include <string.h>

#include "record/record.h"

static bool is_append_kind(enum gpucache_region_kind kind)
{
	return kind == GPUCACHE_REGION_STACKS || kind == GPUCACHE_REGION_CODES ||
	       kind == GPUCACHE_REGION_MODULES || kind == GPUCACHE_REGION_TAGS ||
	       kind == GPUCACHE_REGION_TEXT;
}

static bool append_locked(struct gpc_record *rec, enum gpucache_region_kind kind,
	const struct iovec *parts, unsigned n_parts)
{
	const struct gpucache_region *region = rec->regions[kind];
	struct gpucache_append_head *head = (void *)(rec->base + region->offset);
	unsigned char *body = (unsigned char *)(head + 1);
	uint64_t room = region->count - head->used;
	uint64_t at = head->used;
	uint64_t size = 0;

	for (unsigned i = 0; i < n_parts && size <= room; i++)
		size += parts[i].iov_len < room + 1 ? parts[i].iov_len : room + 1;
	if (kind != GPUCACHE_REGION_TEXT)
		size = gpc_round_up(size, 8);
	if (size > room) {
		__atomic_store_n(&head->n_dropped, head->n_dropped + 1, __ATOMIC_RELAXED);
		return false;
	}
	for (unsigned i = 0; i < n_parts; i++) {
		if (parts[i].iov_len > 0)
			memcpy(body + at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	memset(body + at, 0, head->used + size - at);
	__atomic_store_n(&head->used, head->used + size, __ATOMIC_RELEASE);
	__atomic_store_n(&head->n_records, head->n_records + 1, __ATOMIC_RELEASE);
	gpc_record_mark_page(rec, head);
	if (size)
		gpc_record_mark(rec, body + head->used - size, size);
	return true;
}

bool gpc_record_append_parts(struct gpc_record *rec, enum gpucache_region_kind kind,
	const struct iovec *parts, unsigned n_parts)
{
	bool is_done;

	if (!rec->base || !is_append_kind(kind))
		return false;
	gpc_lock_take(&rec->lock);
	is_done = append_locked(rec, kind, parts, n_parts);
	gpc_lock_release(&rec->lock);
	return is_done;
}

bool gpc_record_append(
	struct gpc_record *rec, enum gpucache_region_kind kind, const void *data, size_t size)
{
	const struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };

	return gpc_record_append_parts(rec, kind, &part, 1);
}

bool gpc_record_append_line(struct gpc_record *rec, const char *line)
{
	char newline = '\n';
	const struct iovec parts[] = {
		{ .iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line) },
		{ .iov_base = &newline, .iov_len = 1 },
	};

	return gpc_record_append_parts(rec, GPUCACHE_REGION_TEXT, parts, 2);
}
