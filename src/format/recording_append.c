/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the append-only regions: indexes their records once, and finds stacks, code objects and tags by id. */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/recording_internal.h"

/* The library nests tags at most 32 deep.  The label of a deeper tag begins with the number of an outer one. */
#define MAX_TAG_DEPTH 64

struct walk {
	const unsigned char *data;
	uint64_t at;
	uint64_t end;
};

static uint64_t body_offset(const struct gpc_recording *rec, enum gpucache_region_kind kind)
{
	return rec->regions[kind].offset + sizeof(struct gpucache_append_head);
}

static struct gpucache_append_head head_of(
	const struct gpc_recording *rec, enum gpucache_region_kind kind)
{
	struct gpucache_append_head head = { 0 };

	if (rec->regions[kind].present)
		memcpy(&head, rec->data + rec->regions[kind].offset, sizeof head);
	return head;
}

/* The bytes in use behind the head, clamped to the region, with a problem noted if they were more. */
static uint64_t used_bytes(struct gpc_recording *rec, enum gpucache_region_kind kind)
{
	uint64_t used = head_of(rec, kind).used;
	uint64_t room;

	if (!rec->regions[kind].present)
		return 0;
	room = rec->regions[kind].size - sizeof(struct gpucache_append_head);
	if (used > room) {
		gpc_recording_note(rec, kind, "claims %llu bytes where there is room for %llu",
			(unsigned long long)used, (unsigned long long)room);
		used = room;
	}
	return used;
}

/* The size of the record at walk->at if it is whole, else 0. */
static uint32_t whole_record(const struct walk *walk, uint32_t head_size)
{
	uint32_t size;

	if (walk->end - walk->at < head_size)
		return 0;
	memcpy(&size, walk->data + walk->at, sizeof size);
	if (size < head_size || size % 8 != 0 || size > walk->end - walk->at)
		return 0;
	return size;
}

/* The checks return what is wrong with a record of `size` bytes, or NULL. */
static const char *check_stack(const unsigned char *record, uint32_t size)
{
	struct gpucache_stack stack;

	memcpy(&stack, record, sizeof stack);
	if (stack.n_native > GPUCACHE_MAX_FRAMES || stack.n_python > GPUCACHE_MAX_FRAMES)
		return "has more frames than are recorded";
	if (((uint64_t)stack.n_native + stack.n_python) * 8 > size - sizeof stack)
		return "has more frames than room for them";
	return stack.id ? NULL : "has no number";
}

static const char *check_code(const unsigned char *record, uint32_t size)
{
	struct gpucache_code code;

	memcpy(&code, record, sizeof code);
	if (code.name_size > GPUCACHE_MAX_CODE_NAME || code.file_size > GPUCACHE_MAX_CODE_FILE ||
		code.lines_size > GPUCACHE_MAX_CODE_LINES)
		return "has a longer name or line table than are recorded";
	if ((uint64_t)code.name_size + code.file_size + code.lines_size > size - sizeof code)
		return "has longer names than room for them";
	return code.id ? NULL : "has no number";
}

static const char *check_module(const unsigned char *record, uint32_t size)
{
	struct gpucache_module module;

	memcpy(&module, record, sizeof module);
	if (size > sizeof module + GPUCACHE_MAX_PATH)
		return "has a longer path than are recorded";
	if (module.start >= module.end || module.build_id_size > sizeof module.build_id)
		return "has no range of addresses";
	return memchr(record + sizeof module, 0, size - sizeof module)
		       ? NULL
		       : "has a path without an end";
}

static const char *check_tag(const unsigned char *record, uint32_t size)
{
	struct gpucache_tag tag;

	memcpy(&tag, record, sizeof tag);
	if (tag.name_size > GPUCACHE_MAX_TAG_NAME)
		return "has a longer name than are recorded";
	return tag.parent < tag.id && tag.name_size <= size - sizeof tag ? NULL : "has no name";
}

static const struct {
	uint32_t head_size;
	uint32_t most; /* records that a writer creates; 0: as many as fit */
	const char *(*check)(const unsigned char *record, uint32_t size);
} appended[GPUCACHE_REGION_COUNT] = {
	[GPUCACHE_REGION_STACKS] = { sizeof(struct gpucache_stack), 0, check_stack },
	[GPUCACHE_REGION_CODES] = { sizeof(struct gpucache_code), GPUCACHE_MAX_CODES, check_code },
	[GPUCACHE_REGION_MODULES] = { sizeof(struct gpucache_module), GPUCACHE_MAX_MODULES,
		check_module },
	[GPUCACHE_REGION_TAGS] = { sizeof(struct gpucache_tag), GPUCACHE_MAX_TAGS, check_tag },
};

/* Returns what is wrong with the record at walk->at, or NULL with its size in *ret_size. */
static const char *check_record(
	const struct walk *walk, enum gpucache_region_kind kind, size_t number, uint32_t *ret_size)
{
	*ret_size = whole_record(walk, appended[kind].head_size);
	if (*ret_size == 0)
		return "is cut";
	if (appended[kind].most && number > appended[kind].most)
		return "is one more than are written";
	return appended[kind].check(walk->data + walk->at, *ret_size);
}

static int compare_index(const void *left, const void *right)
{
	const struct gpc_record_index *a = left;
	const struct gpc_record_index *b = right;

	return GPC_ORDER(a->id, b->id) ?: GPC_ORDER(a->offset, b->offset);
}

/* Indexes the complete records of one region, in file order. */
static enum gpc_status collect(struct gpc_recording *rec, enum gpucache_region_kind kind,
	struct gpc_record_index **ret_index, size_t *ret_n)
{
	uint32_t head_size = appended[kind].head_size;
	struct walk walk = { .data = rec->data };
	struct gpc_record_index *index;
	uint64_t used = used_bytes(rec, kind);
	size_t n = 0;

	index = calloc(used / head_size + 1, sizeof *index);
	if (!index)
		return GPC_NO_METADATA;
	walk.at = used ? body_offset(rec, kind) : 0;
	walk.end = walk.at + used;
	while (walk.at < walk.end) {
		uint32_t size;
		const char *why = check_record(&walk, kind, n + 1, &size);

		if (why) {
			gpc_recording_note(rec, kind, "is damaged from byte %llu on, record %zu %s",
				(unsigned long long)(walk.at - rec->regions[kind].offset), n + 1,
				why);
			break;
		}
		memcpy(&index[n].id, rec->data + walk.at + 4, sizeof index[n].id);
		index[n].offset = walk.at;
		n++;
		walk.at += size;
	}
	*ret_index = index;
	*ret_n = n;
	return GPC_OK;
}

enum gpc_status gpc_recording_index(struct gpc_recording *recording)
{
	const struct {
		enum gpucache_region_kind kind;
		struct gpc_record_index **index;
		size_t *n;
	} indices[] = {
		{ GPUCACHE_REGION_STACKS, &recording->stacks, &recording->n_stacks },
		{ GPUCACHE_REGION_CODES, &recording->codes, &recording->n_codes },
		{ GPUCACHE_REGION_TAGS, &recording->tags, &recording->n_tags },
		{ GPUCACHE_REGION_MODULES, &recording->modules, &recording->n_modules },
	};

	for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
		if (collect(recording, indices[i].kind, indices[i].index, indices[i].n) != GPC_OK)
			return GPC_NO_METADATA;
		/* Modules have no id, and stay in the order of the file. */
		if (indices[i].kind != GPUCACHE_REGION_MODULES)
			qsort(*indices[i].index, *indices[i].n, sizeof **indices[i].index,
				compare_index);
	}
	if (gpc_recording_index_modules(recording) != GPC_OK)
		return GPC_NO_METADATA;
	/* Called only to note a problem of TEXT. */
	(void)used_bytes(recording, GPUCACHE_REGION_TEXT);
	recording->text_mark = calloc(1, sizeof *recording->text_mark);
	return recording->text_mark ? GPC_OK : GPC_NO_METADATA;
}

size_t gpc_record_number(const struct gpc_record_index *index, size_t n, uint32_t id)
{
	size_t at = GPC_ARRAY_COUNT(n, i, index[i].id < id);

	return at < n && index[at].id == id ? at : n;
}

/* The offset of the record with this id, or 0. */
static uint64_t find_record(const struct gpc_record_index *index, size_t n, uint32_t id)
{
	size_t number = gpc_record_number(index, n, id);

	return number < n ? index[number].offset : 0;
}

bool gpc_recording_find_stack(
	const struct gpc_recording *recording, uint32_t id, struct gpc_stack_view *ret_stack)
{
	uint64_t offset = find_record(recording->stacks, recording->n_stacks, id);
	const unsigned char *record = recording->data + offset;
	struct gpucache_stack stack;

	if (offset == 0)
		return false;
	memcpy(&stack, record, sizeof stack);
	ret_stack->id = stack.id;
	ret_stack->flags = stack.flags;
	ret_stack->n_native = stack.n_native;
	ret_stack->n_python = stack.n_python;
	ret_stack->native = (const uint64_t *)(const void *)(record + sizeof stack);
	ret_stack->python = ret_stack->native + stack.n_native;
	return true;
}

bool gpc_recording_find_code(
	const struct gpc_recording *recording, uint32_t id, struct gpc_code_view *ret_code)
{
	uint64_t offset = find_record(recording->codes, recording->n_codes, id);
	const unsigned char *record = recording->data + offset;
	struct gpucache_code code;

	if (offset == 0)
		return false;
	memcpy(&code, record, sizeof code);
	ret_code->name = (const char *)record + sizeof code;
	ret_code->name_size = code.name_size;
	ret_code->file = ret_code->name + code.name_size;
	ret_code->file_size = code.file_size;
	ret_code->lines = (const unsigned char *)ret_code->file + code.file_size;
	ret_code->lines_size = code.lines_size;
	ret_code->first_line = code.first_line;
	ret_code->python_version = code.python_version;
	return true;
}

void gpc_recording_add_tag(
	const struct gpc_recording *recording, uint32_t id, struct gpc_text *text)
{
	const char *names[MAX_TAG_DEPTH];
	uint32_t sizes[MAX_TAG_DEPTH];
	unsigned n = 0;

	/* Ends, because a parent has a lower id (check_tag). */
	while (id != 0 && n < MAX_TAG_DEPTH) {
		uint64_t offset = find_record(recording->tags, recording->n_tags, id);
		struct gpucache_tag tag;

		if (offset == 0)
			break;
		memcpy(&tag, recording->data + offset, sizeof tag);
		names[n] = (const char *)recording->data + offset + sizeof tag;
		sizes[n++] = tag.name_size;
		id = tag.parent;
	}
	if (id != 0)
		gpc_text_add(text, n ? "tag %u/" : "tag %u", id);
	while (n-- > 0) {
		gpc_text_add_clean(text, names[n], sizes[n]);
		if (n > 0)
			gpc_text_add(text, "/");
	}
}

bool gpc_recording_read_text(
	const struct gpc_recording *recording, size_t i, const char **ret_text, size_t *ret_size)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_TEXT];
	uint64_t used = head_of(recording, GPUCACHE_REGION_TEXT).used;
	struct gpc_text_mark mark = *recording->text_mark;
	const char *body;

	if (!region->present)
		return false;
	if (used > region->size - sizeof(struct gpucache_append_head))
		used = region->size - sizeof(struct gpucache_append_head);
	body = (const char *)recording->data + body_offset(recording, GPUCACHE_REGION_TEXT);
	if (i < mark.line)
		mark = (struct gpc_text_mark){ 0 };
	while (mark.at < used) {
		uint64_t start = mark.at;
		uint64_t at = start;

		while (at < used && body[at] != '\n' && body[at] != '\0')
			at++;
		/* Empty lines are padding, and not counted. */
		if (at > start && mark.line == i) {
			*recording->text_mark = mark;
			*ret_text = body + start;
			*ret_size = (size_t)(at - start);
			return true;
		}
		mark.line += at > start;
		mark.at = at + 1;
	}
	return false;
}

uint64_t gpc_recording_dropped(
	const struct gpc_recording *recording, enum gpucache_region_kind kind)
{
	bool is_append = kind == GPUCACHE_REGION_TEXT || appended[kind].head_size != 0;

	return is_append ? head_of(recording, kind).n_dropped : 0;
}
