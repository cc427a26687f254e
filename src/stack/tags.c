/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of paths: a tag is (parent, domain, name) under one number, so a push is one probe and a pop one load.
 * The table only grows, by compare-and-swap, so it needs no lock.
 */
#include "stack/tags.h"

#include <string.h>

#include "base/hash.h"
#include "base/metamem.h"

#define N_SLOTS (2 * GPUCACHE_MAX_TAGS) /* a power of two */

/* Parents that are no tags: of the outermost ranges, of domains and of strings.  Ids of tags begin at FIRST. */
#define ROOT       0u
#define OF_DOMAINS 1u
#define OF_STRINGS 2u
#define FIRST      3u

/* A framework has a handful of domains, and hundreds of strings. */
#define MAX_DOMAINS 64u
#define MAX_STRINGS 2048u

/*
 * Below a parent with MANY_NUMBERED children, each number in a new name becomes a star; below one with MANY, the whole
 * name does.  Both limits are divided by WHEN_CROWDED once half of the table is used.
 */
#define MANY_NUMBERED 32u
#define MANY          128u
#define WHEN_CROWDED  8u

enum stage {
	STAGE_NEW,
	STAGE_COMPLETE,
	STAGE_TOLD, /* a thread writes it to the sink, or has; domains and strings need not be written */
};

struct tag {
	uint32_t hash;
	uint32_t parent;
	uint32_t domain;
	_Atomic uint32_t n_children;
	_Atomic uint8_t stage;
	uint8_t depth; /* 1: an outermost range, a domain or a string */
	uint8_t size;  /* of the name */
	char name[GPC_TAG_NAME_SIZE];
};

_Static_assert(sizeof(struct tag) == 96, "a cache line and a half");

struct gpc_tag_table {
	_Atomic uint32_t n; /* next id */
	_Atomic uint32_t slots[N_SLOTS];
	struct tag tags[GPUCACHE_MAX_TAGS];
};

/* The tag to find or add. */
struct key {
	uint32_t parent;
	uint32_t domain;
	uint32_t hash;
	uint32_t size;
	char name[GPC_TAG_NAME_SIZE];
};

static void set_hash(struct key *key)
{
	const uint64_t start = GPC_HASH_START ^ ((uint64_t)key->parent << 32 | key->domain);
	const uint64_t hash = gpc_hash_bytes(start, key->name, key->size);

	key->hash = (uint32_t)(hash ^ hash >> 32);
}

static struct key make_key(uint32_t parent, uint32_t domain, const char *name)
{
	struct key key = { .parent = parent, .domain = domain };

	while (key.size < GPC_TAG_NAME_SIZE - 1 && name[key.size])
		key.size++;
	/* If the name is truncated, drop the bytes of a UTF-8 character that is cut in two. */
	if (name[key.size])
		while (key.size > 0 && ((unsigned char)name[key.size] & 0xc0) == 0x80)
			key.size--;
	memcpy(key.name, name, key.size);
	set_hash(&key);
	return key;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "step 412" becomes "step *". */
static void forget_numbers(struct key *key)
{
	bool was_digit = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < key->size; i++) {
		char c = key->name[i];

		if (!is_digit(c) || !was_digit)
			key->name[n++] = is_digit(c) ? '*' : c;
		was_digit = is_digit(c);
	}
	key->size = n;
	set_hash(key);
}

static bool is_same(const struct tag *tag, const struct key *key)
{
	return tag->hash == key->hash && tag->parent == key->parent && tag->domain == key->domain &&
	       tag->size == key->size && memcmp(tag->name, key->name, key->size) == 0;
}

/* The id of the tag with this key, or 0 and the empty slot that ended the probe. */
static uint32_t probe(const struct gpc_tag_table *table, const struct key *key, uint32_t *ret_slot)
{
	uint32_t at = key->hash & (N_SLOTS - 1);
	uint32_t id;

	for (;; at = (at + 1) & (N_SLOTS - 1)) {
		id = atomic_load_explicit(&table->slots[at], memory_order_acquire);
		if (!id || is_same(&table->tags[id], key))
			break;
	}
	*ret_slot = at;
	return id;
}

static struct gpc_tag_table *find_table(const struct gpc_tags *tags)
{
	return atomic_load_explicit(&tags->table, memory_order_acquire);
}

static struct gpc_tag_table *take_table(struct gpc_tags *tags)
{
	struct gpc_tag_table *table = find_table(tags);
	struct gpc_tag_table *mine;

	if (table)
		return table;
	mine = gpc_metamem_map(sizeof *mine);
	if (!mine)
		return NULL;
	atomic_init(&mine->n, FIRST);
	if (atomic_compare_exchange_strong(&tags->table, &table, mine))
		return mine;
	gpc_metamem_unmap(mine, sizeof *mine);
	return table;
}

static bool is_range(const struct tag *tag)
{
	return tag->parent != OF_DOMAINS && tag->parent != OF_STRINGS;
}

/* Writes a complete tag to the sink unless another thread does; false if the sink is full. */
static bool tell(struct gpc_tags *tags, struct gpc_tag_table *table, uint32_t id)
{
	const struct gpc_stack_sink *sink = atomic_load(&tags->sink);
	struct tag *tag = &table->tags[id];
	uint8_t stage = STAGE_COMPLETE;
	struct {
		struct gpucache_tag head;
		char name[(GPC_TAG_NAME_SIZE + 7) / 8 * 8];
	} record = { .head = { .id = id, .parent = tag->parent, .name_size = tag->size } };

	if (!sink || !atomic_compare_exchange_strong(&tag->stage, &stage, STAGE_TOLD) ||
		!is_range(tag))
		return true;
	memcpy(record.name, tag->name, tag->size);
	record.head.size = (uint32_t)sizeof record.head + (tag->size + 7u) / 8 * 8;
	return sink->append(sink->self, GPUCACHE_REGION_TAGS, &record, record.head.size);
}

void gpc_tags_attach(struct gpc_tags *tags, const struct gpc_stack_sink *sink)
{
	struct gpc_tag_table *table;
	uint32_t end;

	atomic_store(&tags->sink, sink);
	table = find_table(tags);
	end = table ? atomic_load(&table->n) : 0;
	for (uint32_t id = FIRST; id < end; id++) {
		if (atomic_load(&table->tags[id].stage) == STAGE_COMPLETE && !tell(tags, table, id))
			atomic_store(&tags->is_closed, true);
	}
}

/* Takes the next id; 0 if all are taken. */
static uint32_t take_place(struct gpc_tag_table *table)
{
	uint32_t id = atomic_load_explicit(&table->n, memory_order_relaxed);

	do {
		if (id >= GPUCACHE_MAX_TAGS)
			return 0;
	} while (!atomic_compare_exchange_weak(&table->n, &id, id + 1));
	return id;
}

static uint32_t add(
	struct gpc_tags *tags, struct gpc_tag_table *table, const struct key *key, uint32_t slot)
{
	uint32_t id = atomic_load_explicit(&tags->is_closed, memory_order_relaxed)
			      ? 0
			      : take_place(table);
	struct tag *tag = &table->tags[id];
	uint32_t known = 0;

	if (!id)
		return 0;
	tag->hash = key->hash;
	tag->parent = key->parent;
	tag->domain = key->domain;
	tag->depth = (uint8_t)(table->tags[key->parent].depth + 1);
	tag->size = (uint8_t)key->size;
	memcpy(tag->name, key->name, key->size);
	atomic_store(&tag->stage, STAGE_COMPLETE);
	if (!tell(tags, table, id)) {
		atomic_store(&tags->is_closed, true);
		return 0;
	}
	/* Another thread may fill the slot first.  If it added the same name, its id counts. */
	while (!atomic_compare_exchange_strong(&table->slots[slot], &known, id)) {
		known = probe(table, key, &slot);
		if (known)
			return known;
	}
	atomic_fetch_add_explicit(&table->tags[key->parent].n_children, 1, memory_order_relaxed);
	return id;
}

/* Finds or adds a range, with stars in its name if it has many siblings; 0: no room. */
static uint32_t put_range(struct gpc_tags *tags, uint32_t parent, uint32_t domain, const char *name)
{
	struct gpc_tag_table *table = take_table(tags);
	struct key key = make_key(parent, domain, name);
	uint32_t part = 1;
	uint32_t n_children;
	uint32_t slot;
	uint32_t id;

	if (!table || table->tags[parent].depth >= GPC_TAG_MAX_DEPTH)
		return 0;
	id = probe(table, &key, &slot);
	if (id)
		return id;
	n_children = atomic_load_explicit(&table->tags[parent].n_children, memory_order_relaxed);
	if (atomic_load_explicit(&table->n, memory_order_relaxed) >= GPUCACHE_MAX_TAGS / 2)
		part = WHEN_CROWDED;
	if (n_children >= MANY_NUMBERED / part) {
		forget_numbers(&key);
		id = probe(table, &key, &slot);
	}
	if (!id && n_children >= MANY / part) {
		key = make_key(parent, domain, "*");
		id = probe(table, &key, &slot);
	}
	return id ? id : add(tags, table, &key, slot);
}

/* Finds or adds a domain or a string, of which there are at most `max`. */
static uint32_t put_text(struct gpc_tags *tags, uint32_t parent, uint32_t max, const char *text)
{
	struct gpc_tag_table *table = take_table(tags);
	struct key key = make_key(parent, 0, text);
	uint32_t slot;
	uint32_t id;

	if (!table)
		return 0;
	id = probe(table, &key, &slot);
	if (id ||
		atomic_load_explicit(&table->tags[parent].n_children, memory_order_relaxed) >= max)
		return id;
	return add(tags, table, &key, slot);
}

uint32_t gpc_tags_domain(struct gpc_tags *tags, const char *name)
{
	return put_text(tags, OF_DOMAINS, MAX_DOMAINS, name);
}

uint32_t gpc_tags_string(struct gpc_tags *tags, const char *text)
{
	return put_text(tags, OF_STRINGS, MAX_STRINGS, text);
}

/* Counts the ranges of this domain from `tag` outwards. */
static uint32_t count_of(const struct gpc_tags *tags, uint32_t tag, uint32_t domain)
{
	const struct gpc_tag_table *table = find_table(tags);
	uint32_t n = 0;

	for (; tag; tag = table->tags[tag].parent)
		n += table->tags[tag].domain == domain;
	return n;
}

uint32_t gpc_tags_push(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, const char *name)
{
	uint32_t level = count_of(tags, place->tag, domain) + place->n_untagged;
	uint32_t tag = place->n_untagged ? 0 : put_range(tags, place->tag, domain, name);

	if (tag) {
		place->tag = tag;
	} else {
		place->n_untagged++;
		atomic_fetch_add_explicit(&tags->n_dropped, 1, memory_order_relaxed);
	}
	return level;
}

bool gpc_tags_pop(
	struct gpc_tags *tags, struct gpc_tag_place *place, uint32_t domain, uint32_t *ret_level)
{
	const struct gpc_tag_table *table = find_table(tags);
	uint32_t inner[GPC_TAG_MAX_DEPTH];
	uint32_t tag = place->tag;
	uint32_t n_inner = 0;
	uint32_t left;

	if (place->n_untagged) {
		place->n_untagged--;
		*ret_level = count_of(tags, tag, domain) + place->n_untagged;
		return true;
	}
	for (; tag && table->tags[tag].domain != domain; tag = table->tags[tag].parent)
		inner[n_inner++] = tag;
	if (!tag)
		return false;
	left = table->tags[tag].parent;
	*ret_level = count_of(tags, left, domain);
	/* The ranges inside, of other domains, stay open: push their names again, outermost first, onto the parent. */
	while (n_inner > 0) {
		const struct tag *other = &table->tags[inner[--n_inner]];
		uint32_t moved = put_range(tags, left, other->domain, other->name);

		if (moved)
			left = moved;
		else
			place->n_untagged++;
	}
	place->tag = left;
	return true;
}

uint32_t gpc_tags_end(const struct gpc_tags *tags)
{
	const struct gpc_tag_table *table = find_table(tags);

	return table ? atomic_load_explicit(&table->n, memory_order_acquire) : 0;
}

const char *gpc_tags_name(const struct gpc_tags *tags, uint32_t id)
{
	return id < gpc_tags_end(tags) ? find_table(tags)->tags[id].name : "";
}

uint32_t gpc_tags_parent(const struct gpc_tags *tags, uint32_t id)
{
	return id < gpc_tags_end(tags) ? find_table(tags)->tags[id].parent : 0;
}

void gpc_tags_fini(struct gpc_tags *tags)
{
	gpc_metamem_unmap(find_table(tags), sizeof(struct gpc_tag_table));
	*tags = (struct gpc_tags){ .table = NULL };
}
