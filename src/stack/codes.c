/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intern table of code objects.  Their keys, address and fingerprint, are in an array of their own, because they are
 * not part of the record.  A lookup takes no lock.
 */
#include "stack/codes.h"

#include <string.h>

#include "base/bytes.h"
#include "base/metamem.h"

#define KEYS_BYTES ((GPUCACHE_MAX_CODES + 1) * sizeof(struct gpc_code_key))

/* A code object to find, or, if `code` is set, to add. */
struct wanted {
	struct gpc_codes *codes;
	const struct gpc_code_key *key;
	const struct gpc_code *code;
};

static uint64_t hash_key(const struct gpc_code_key *key)
{
	uint64_t h = (key->code ^ key->fingerprint) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 40;
}

static inline bool is_same(const struct gpc_intern *intern, uint32_t id, const void *arg)
{
	const struct wanted *wanted = arg;
	const struct gpc_code_key *key = &wanted->codes->keys[id];

	(void)intern;
	return key->code == wanted->key->code && key->fingerprint == wanted->key->fingerprint;
}

uint32_t gpc_codes_find(const struct gpc_codes *codes, const struct gpc_code_key *key)
{
	struct wanted wanted = { (struct gpc_codes *)codes, key, NULL };
	uint32_t slot;

	return gpc_intern_probe(&codes->intern, hash_key(key), is_same, &wanted, &slot);
}

static uint32_t write_record(uint64_t *record, uint64_t room, uint32_t number, const void *arg)
{
	const struct wanted *wanted = arg;
	const struct gpc_code *code = wanted->code;
	struct gpucache_code head = {
		.id = number,
		.first_line = code->first_line,
		.python_version = code->python_version,
		.name_size = (uint16_t)gpc_smaller(code->name_size, GPUCACHE_MAX_CODE_NAME),
		.file_size = (uint32_t)gpc_smaller(code->file_size, GPUCACHE_MAX_CODE_FILE),
		.lines_size = (uint32_t)gpc_smaller(code->lines_size, GPUCACHE_MAX_CODE_LINES),
	};
	char *to = (char *)record;
	uint32_t text_size = head.name_size + head.file_size + head.lines_size;

	head.size = (uint32_t)gpc_round_up(sizeof(head) + text_size, 8);
	if (head.size > room)
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
	wanted->codes->keys[number] = *wanted->key;
	return head.size;
}

uint32_t gpc_codes_add(
	struct gpc_codes *codes, const struct gpc_code_key *key, const struct gpc_code *code)
{
	struct wanted wanted = { codes, key, code };
	bool is_new;

	return gpc_intern_add(
		&codes->intern, hash_key(key), is_same, write_record, &wanted, &is_new);
}

bool gpc_codes_get(const struct gpc_codes *codes, uint32_t number, struct gpc_code *ret_code)
{
	struct gpucache_code head;
	const char *record;

	if (!gpc_intern_has(&codes->intern, number))
		return false;
	record = gpc_intern_record(&codes->intern, number);
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
	enum gpc_status st = GPC_NO_METADATA;

	*codes = (struct gpc_codes){ .keys = gpc_metamem_map(KEYS_BYTES) };
	if (codes->keys)
		st = gpc_intern_init(&codes->intern, GPUCACHE_MAX_CODES,
			GPC_CODES_ARENA / sizeof(uint64_t), GPUCACHE_REGION_CODES, sink);
	if (st)
		gpc_codes_fini(codes);
	return st;
}

void gpc_codes_fini(struct gpc_codes *codes)
{
	gpc_intern_fini(&codes->intern);
	gpc_metamem_unmap(codes->keys, KEYS_BYTES);
	codes->keys = NULL;
}
