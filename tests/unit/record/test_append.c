/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "private_record.h"

static const struct gpucache_append_head *head_of(enum gpucache_region_kind kind)
{
	return record_at(kind, 0);
}

TEST(a_record_is_padded_with_zeros_to_8_bytes)
{
	const struct gpucache_append_head *head = head_of(GPUCACHE_REGION_CODES);

	assert_true(gpc_record_append(&rec, GPUCACHE_REGION_CODES, "abcde", 5));
	assert_int_equal(head->used, 8);
	assert_int_equal(head->n_records, 1);
	assert_memory_equal(head + 1, "abcde\0\0\0", 8);
}

TEST(lines_are_not_padded)
{
	const struct gpucache_append_head *head = head_of(GPUCACHE_REGION_TEXT);
	uint64_t before = head->used;

	assert_true(gpc_record_append_line(&rec, "one"));
	assert_true(gpc_record_append_line(&rec, ""));
	assert_true(gpc_record_append_line(&rec, "two"));
	assert_int_equal(head->used, before + 9);
	assert_memory_equal((const char *)(head + 1) + before, "one\n\ntwo\n", 9);
}

TEST(a_full_region_counts_what_it_drops)
{
	const struct gpucache_append_head *head = head_of(GPUCACHE_REGION_STACKS);
	uint64_t room = rec.regions[GPUCACHE_REGION_STACKS]->count;
	static char block[4096];
	uint64_t n = 0;

	while (gpc_record_append(&rec, GPUCACHE_REGION_STACKS, block, sizeof block))
		n++;
	assert_int_equal(n, room / sizeof block);
	assert_int_equal(head->n_dropped, 1);
	assert_int_equal(head->n_records, n);
	/* What is smaller still fits, to the last byte. */
	assert_true(gpc_record_append(
		&rec, GPUCACHE_REGION_STACKS, block, (size_t)(room - n * sizeof block)));
	assert_int_equal(head->used, room);
	assert_false(gpc_record_append(&rec, GPUCACHE_REGION_STACKS, block, 1));
	assert_int_equal(head->n_dropped, 2);
}

TEST(an_impossible_size_is_refused)
{
	uint64_t before = head_of(GPUCACHE_REGION_TEXT)->used;

	assert_false(gpc_record_append(&rec, GPUCACHE_REGION_STACKS, "", SIZE_MAX));
	assert_int_equal(head_of(GPUCACHE_REGION_STACKS)->used, 0);
	assert_false(gpc_record_append(&rec, GPUCACHE_REGION_TEXT, "", SIZE_MAX));
	assert_int_equal(head_of(GPUCACHE_REGION_TEXT)->used, before);
}

TEST(other_regions_are_refused)
{
	for (int kind = -1; kind <= GPUCACHE_REGION_COUNT; kind++) {
		bool is_append = kind == GPUCACHE_REGION_STACKS || kind == GPUCACHE_REGION_CODES ||
				 kind == GPUCACHE_REGION_MODULES || kind == GPUCACHE_REGION_TEXT ||
				 kind == GPUCACHE_REGION_TAGS;

		assert_int_equal(gpc_record_append(&rec, (enum gpucache_region_kind)kind, "x", 1),
			is_append);
	}
}
