/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <pthread.h>

#include "base/metamem.h"
#include "stack/codes.h"
#include "stack/sink_box.h"

static struct sink_box box;
static char long_text[64u << 10];

static int setup(void **state)
{
	sink_box_clear(&box);
	gpc_metamem_fail_at(0);
	memset(long_text, 'x', sizeof(long_text));
	return 0;
}

FIXTURE(setup, NULL);

static void open_codes(struct gpc_codes *codes)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);

	assert_int_equal(gpc_codes_init(codes, &sink), GPC_OK);
}

static const struct gpc_code grow = {
	.name = "Net.grow",
	.file = "/home/me/train.py",
	.lines = "\x80\x01",
	.name_size = 8,
	.file_size = 17,
	.lines_size = 2,
	.first_line = 41,
	.python_version = 0x030b,
};

TEST(a_code_object_is_stored_once_and_found_by_its_whole_key)
{
	struct gpc_code_key key = { .code = 0x1000, .fingerprint = 41 }, other = key;
	const struct gpucache_code *record;
	struct gpc_codes codes;
	struct gpc_code found;

	open_codes(&codes);
	assert_int_equal(gpc_codes_find(&codes, &key), 0);
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 1);
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 1);
	assert_int_equal(gpc_codes_find(&codes, &key), 1);
	other.fingerprint = 42;
	assert_int_equal(gpc_codes_find(&codes, &other), 0);
	assert_int_equal(gpc_codes_add(&codes, &other, &grow), 2);
	assert_int_equal(box.n[GPUCACHE_REGION_CODES], 2);
	record = sink_box_next(&box, GPUCACHE_REGION_CODES, NULL);
	assert_int_equal(record->id, 1);
	assert_int_equal(record->size, 56);
	assert_memory_equal(record + 1, "Net.grow/home/me/train.py\x80\x01\0\0\0\0\0", 32);
	assert_true(gpc_codes_get(&codes, 1, &found));
	assert_int_equal(found.name_size, 8);
	assert_memory_equal(found.file, grow.file, 17);
	assert_memory_equal(found.lines, grow.lines, 2);
	assert_int_equal(found.first_line, 41);
	assert_int_equal(found.python_version, 0x030b);
	assert_false(gpc_codes_get(&codes, 3, &found));
	assert_false(gpc_codes_get(&codes, 0, &found));
	gpc_codes_fini(&codes);
}

TEST(what_is_too_long_is_cut)
{
	struct gpc_code_key key = { .code = 1 };
	struct gpc_code code = {
		.name = long_text,
		.file = long_text,
		.lines = long_text,
		.name_size = 5000,
		.file_size = 5000,
		.lines_size = sizeof(long_text),
	};
	struct gpc_codes codes;
	struct gpc_code found;

	open_codes(&codes);
	assert_int_equal(gpc_codes_add(&codes, &key, &code), 1);
	assert_true(gpc_codes_get(&codes, 1, &found));
	assert_int_equal(found.name_size, GPUCACHE_MAX_CODE_NAME);
	assert_int_equal(found.file_size, GPUCACHE_MAX_CODE_FILE);
	assert_int_equal(found.lines_size, GPUCACHE_MAX_CODE_LINES);
	gpc_codes_fini(&codes);
}

TEST(a_full_table_closes_and_keeps_what_it_has)
{
	struct gpc_code_key key = { .code = 0x1000 };
	struct gpc_codes codes;

	open_codes(&codes);
	for (uint32_t i = 1; i <= GPUCACHE_MAX_CODES; i++) {
		key.code += 64;
		assert_int_equal(gpc_codes_add(&codes, &key, &grow), i);
	}
	assert_false(gpc_intern_is_closed(&codes.intern));
	key.code += 64;
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 0);
	assert_true(gpc_intern_is_closed(&codes.intern));
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 0);
	key.code = 0x1040;
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 1);
	gpc_codes_fini(&codes);
}

TEST(long_tables_fill_the_arena_and_close_it)
{
	struct gpc_code_key key = { .code = 0x1000 };
	struct gpc_code code = grow;
	struct gpc_codes codes;
	uint32_t n = 0;

	code.lines = long_text;
	code.lines_size = GPUCACHE_MAX_CODE_LINES;
	open_codes(&codes);
	do
		key.code += 64;
	while (gpc_codes_add(&codes, &key, &code) && ++n < GPUCACHE_MAX_CODES);
	assert_in_range(n, 120, 128);
	assert_true(gpc_intern_is_closed(&codes.intern));
	gpc_codes_fini(&codes);
}

TEST(a_refusing_sink_closes_the_table)
{
	struct gpc_code_key key = { .code = 1 };
	struct gpc_codes codes;

	open_codes(&codes);
	box.refuses = true;
	assert_int_equal(gpc_codes_add(&codes, &key, &grow), 0);
	assert_int_equal(gpc_codes_find(&codes, &key), 0);
	assert_true(gpc_intern_is_closed(&codes.intern));
	gpc_codes_fini(&codes);
}

TEST(without_memory_there_is_no_table)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);
	size_t before = gpc_metamem_total();
	struct gpc_codes codes;

	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_codes_init(&codes, &sink), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	open_codes(&codes);
	gpc_codes_fini(&codes);
	gpc_codes_fini(&codes);
	assert_int_equal(gpc_metamem_total(), before);
}

static void *add_many(void *arg)
{
	struct gpc_codes *codes = arg;
	struct gpc_code found;

	for (uint32_t i = 0; i < 3000; i++) {
		struct gpc_code_key key = { .code = 0x1000 + i % 1000 * 16,
			.fingerprint = i % 1000 };
		struct gpc_code code = grow;
		uint32_t number = gpc_codes_find(codes, &key);

		code.first_line = i % 1000;
		if (!number)
			number = gpc_codes_add(codes, &key, &code);
		if (!gpc_codes_get(codes, number, &found) || found.first_line != i % 1000)
			return codes;
	}
	return NULL;
}

TEST(threads_that_add_the_same_code_objects_store_each_once)
{
	pthread_t threads[4];
	struct gpc_codes codes;
	void *wrong;

	open_codes(&codes);
	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, &codes), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(box.n[GPUCACHE_REGION_CODES], 1000);
	gpc_codes_fini(&codes);
}
