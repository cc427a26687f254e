/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/intern.h"

#include <string.h>

#include "base/metamem.h"
#include "unit.h"

/* A record is a word; the hash of all is the same, so that every probe is a row of compares. */
struct record {
	uint64_t word;
};

static unsigned n_appended;
static unsigned n_room;

static bool append(void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	assert_int_equal(region, GPUCACHE_REGION_STACKS);
	assert_int_equal(size, sizeof(struct record));
	assert_non_null(record);
	return n_appended < n_room && ++n_appended;
}

static bool is(const struct gpc_intern *intern, uint32_t id, const void *key)
{
	return memcmp(gpc_intern_record(intern, id), key, sizeof(struct record)) == 0;
}

static uint32_t write_record(uint64_t *to, uint64_t room, uint32_t id, const void *key)
{
	if (room < sizeof(struct record))
		return 0;
	memcpy(to, key, sizeof(struct record));
	return sizeof(struct record);
}

static uint32_t add(struct gpc_intern *intern, uint64_t word, bool *ret_is_new)
{
	struct record key = { word };

	return gpc_intern_add(intern, 7, is, write_record, &key, ret_is_new);
}

static uint32_t find(const struct gpc_intern *intern, uint64_t word)
{
	struct record key = { word };
	uint32_t slot;

	return gpc_intern_probe(intern, 7, is, &key, &slot);
}

static struct gpc_intern start(uint32_t max, uint32_t words, unsigned room)
{
	static const struct gpc_stack_sink sink = { .append = append };
	struct gpc_intern intern;

	n_appended = 0;
	n_room = room;
	assert_int_equal(
		gpc_intern_init(&intern, max, words, GPUCACHE_REGION_STACKS, &sink), GPC_OK);
	return intern;
}

TEST(each_record_has_one_number)
{
	struct gpc_intern intern = start(100, 100, 100);
	bool is_new;

	for (uint64_t word = 1; word <= 100; word++) {
		assert_int_equal(find(&intern, word), 0);
		assert_int_equal(add(&intern, word, &is_new), word);
		assert_true(is_new);
	}
	for (uint64_t word = 1; word <= 100; word++) {
		assert_int_equal(find(&intern, word), word);
		assert_int_equal(add(&intern, word, &is_new), word);
		assert_false(is_new);
	}
	assert_int_equal(n_appended, 100);
	assert_true(gpc_intern_has(&intern, 100));
	assert_false(gpc_intern_has(&intern, 101));
	assert_false(gpc_intern_has(&intern, 0));
	gpc_intern_fini(&intern);
}

/* Full of numbers, of words, or at the sink's end: what is known stays, and nothing else comes. */
TEST(a_full_table_is_closed)
{
	static const struct {
		uint32_t max, words;
		unsigned room;
	} full[] = { { 3, 100, 100 }, { 100, 3, 100 }, { 100, 100, 3 } };

	for (size_t i = 0; i < sizeof full / sizeof full[0]; i++) {
		struct gpc_intern intern = start(full[i].max, full[i].words, full[i].room);
		bool is_new;

		for (uint64_t word = 1; word <= 3; word++)
			assert_int_equal(add(&intern, word, &is_new), word);
		assert_int_equal(add(&intern, 4, &is_new), 0);
		assert_false(is_new);
		assert_true(intern.is_closed);
		n_room = 100;
		assert_int_equal(add(&intern, 5, &is_new), 0);
		assert_int_equal(add(&intern, 2, &is_new), 2);
		assert_int_equal(n_appended, 3);
		gpc_intern_fini(&intern);
	}
}

TEST(without_memory_there_is_no_table)
{
	static const struct gpc_stack_sink sink = { .append = append };
	struct gpc_intern intern;

	gpc_metamem_fail_at(1);
	assert_int_equal(
		gpc_intern_init(&intern, 10, 10, GPUCACHE_REGION_STACKS, &sink), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
}
