/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intern table: open addressing over (address, fingerprint), records appended to an arena, numbers published last.
 * A find takes no lock; an addition takes one, and the table is never more than half full.
 */
#include "stack/codes.h"

#include <string.h>

#include "base/bytes.h"
#include "base/metamem.h"

#define N_SLOTS (2 * GPC_CODES_MAX) /* a power of two, at most half full */

struct gpc_codes_slot {
	struct gpc_code_key key;
	_Atomic uint32_t number;
};

static uint32_t first_slot(const struct gpc_code_key *key)
{
	uint64_t h = (key->code ^ key->fingerprint) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 40) & (N_SLOTS - 1);
}

/* The number, or 0 and the empty slot where the probe ended. */
static uint32_t probe(
	const struct gpc_codes *codes, const struct gpc_code_key *key, uint32_t *ret_slot)
{
	uint32_t at = first_slot(key);

	for (;; at = (at + 1) & (N_SLOTS - 1)) {
		const struct gpc_codes_slot *slot = &codes->slots[at];
		uint32_t number = atomic_load_explicit(&slot->number, memory_order_acquire);

		if (!number)
			break;
		if (slot->key.code == key->code && slot->key.fingerprint == key->fingerprint)
			return number;
	}
	*ret_slot = at;
	return 0;
}

uint32_t gpc_codes_find(const struct gpc_codes *codes, const struct gpc_code_key *key)
{
	uint32_t slot;

	return probe(codes, key, &slot);
}

static uint32_t at_most(uint32_t size, uint32_t limit)
{
	return size < limit ? size : limit;
}

/* Writes the record to the end of the arena; its size, or 0 where it does not fit. */
static uint32_t write_record_locked(
	struct gpc_codes *codes, uint32_t number, const struct gpc_code *code)
{
	struct gpucache_code head = {
		.id = number,
		.first_line = code->first_line,
		.python_version = code->python_version,
		.name_size = (uint16_t)at_most(code->name_size, GPC_CODES_MAX_NAME),
		.file_size = at_most(code->file_size, GPC_CODES_MAX_FILE),
		.lines_size = at_most(code->lines_size, GPC_CODES_MAX_LINES),
	};
	char *to = codes->arena + codes->arena_used;
	uint32_t text_size = head.name_size + head.file_size + head.lines_size;

	head.size = (uint32_t)gpc_round_up(sizeof(head) + text_size, 8);
	if (head.size > GPC_CODES_ARENA - codes->arena_used)
		return 0;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	memcpy(to, code->name, head.name_size);
	to += head.name_size;
	memcpy(to, code->file, head.file_size);
	to += head.file_size;
	memcpy(to, code->lines, head.lines_size);
	to += head.lines_size;
	memset(to, 0, head.size - sizeof(head) - text_size);
	return head.size;
}

static uint32_t add_locked(struct gpc_codes *codes, const struct gpc_code_key *key,
	const struct gpc_code *code, uint32_t slot)
{
	uint32_t number = atomic_load_explicit(&codes->n_ids, memory_order_relaxed) + 1;
	uint32_t size;

	if (number > GPC_CODES_MAX)
		return 0;
	size = write_record_locked(codes, number, code);
	if (!size)
		return 0;
	if (!gpc_stack_sink_append(
		    &codes->sink, GPUCACHE_REGION_CODES, codes->arena + codes->arena_used, size))
		return 0;
	codes->record_at[number] = codes->arena_used;
	codes->arena_used += size;
	codes->slots[slot].key = *key;
	atomic_store_explicit(&codes->n_ids, number, memory_order_release);
	atomic_store_explicit(&codes->slots[slot].number, number, memory_order_release);
	return number;
}

uint32_t gpc_codes_add(
	struct gpc_codes *codes, const struct gpc_code_key *key, const struct gpc_code *code)
{
	uint32_t slot;
	uint32_t number;

	if (gpc_codes_is_closed(codes))
		return gpc_codes_find(codes, key);
	gpc_lock_take(&codes->lock);
	number = probe(codes, key, &slot);
	if (!number)
		number = add_locked(codes, key, code, slot);
	if (!number)
		atomic_store_explicit(&codes->is_closed, true, memory_order_relaxed);
	gpc_lock_release(&codes->lock);
	return number;
}

bool gpc_codes_is_closed(const struct gpc_codes *codes)
{
	return atomic_load_explicit(&codes->is_closed, memory_order_relaxed);
}

bool gpc_codes_get(const struct gpc_codes *codes, uint32_t number, struct gpc_code *ret_code)
{
	struct gpucache_code head;
	const char *record;

	if (!number || number > atomic_load_explicit(&codes->n_ids, memory_order_acquire))
		return false;
	record = codes->arena + codes->record_at[number];
	memcpy(&head, record, sizeof(head));
	*ret_code = (struct gpc_code){
		.name = record + sizeof(head),
		.file = record + sizeof(head) + head.name_size,
		.lines = record + sizeof(head) + head.name_size + head.file_size,
		.name_size = head.name_size,
		.file_size = head.file_size,
		.lines_size = head.lines_size,
		.first_line = head.first_line,
		.python_version = head.python_version,
	};
	return true;
}

enum gpc_status gpc_codes_init(struct gpc_codes *codes, const struct gpc_stack_sink *sink)
{
	size_t slots_bytes = N_SLOTS * sizeof(struct gpc_codes_slot);
	size_t index_bytes = (GPC_CODES_MAX + 2) * sizeof(uint32_t);
	size_t total = slots_bytes + index_bytes + GPC_CODES_ARENA;
	char *base = gpc_metamem_map(total);

	if (!base)
		return GPC_NO_METADATA;
	*codes = (struct gpc_codes){
		.sink = *sink,
		.slots = (struct gpc_codes_slot *)(void *)base,
		.record_at = (uint32_t *)(void *)(base + slots_bytes),
		.arena = base + slots_bytes + index_bytes,
		.mapped_bytes = total,
	};
	gpc_lock_init(&codes->lock, GPC_RANK_DEPOT);
	return GPC_OK;
}

void gpc_codes_fini(struct gpc_codes *codes)
{
	if (!codes->slots)
		return;
	gpc_metamem_unmap(codes->slots, codes->mapped_bytes);
	codes->slots = NULL;
}
