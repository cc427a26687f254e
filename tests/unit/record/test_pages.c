/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"
#include "private_record.h"

static bool is_marked(const void *ptr)
{
	return rec.pages[((const unsigned char *)ptr - rec.base) / GPUCACHE_PAGE];
}

/* Every marked page holds something, and so does no other. */
static void check_marks(void)
{
	for (size_t page = 0; page < rec.size / GPUCACHE_PAGE; page++) {
		const unsigned char *bytes = rec.base + page * GPUCACHE_PAGE;
		bool is_zero = bytes[0] == 0 && memcmp(bytes, bytes + 1, GPUCACHE_PAGE - 1) == 0;

		assert_int_equal(rec.pages[page], !is_zero);
	}
}

TEST(every_way_to_store_marks_its_page)
{
	struct gpucache_block block = { .state = GPUCACHE_BLOCK_LIVE, .size = 512 };
	struct gpucache_segment segment = { .state = 1 };
	struct gpucache_device device = { .total_bytes = 1 };
	char code[6000] = { [0] = 1, [5999] = 1 };
	uint32_t index;

	check_marks();
	for (uint32_t i = 0; i < 300; i++) {
		record_block(&rec, 50 * i % rec.n_blocks, &block);
		gpc_record_segment(&rec, i % rec.n_segments, &segment);
		gpc_record_site_add(&rec, i % 2, i, (struct gpc_share){ 100, 1 }, i);
		gpc_record_history(
			&rec, 1, rec.header->start_monotonic_ns + i * 1000000, i, i, 0, i);
		gpc_record_peak(&rec, i % 2, i, 1000 * i, 1000 * i, 1000 * i);
		gpc_record_append(&rec, GPUCACHE_REGION_STACKS, code, 40);
	}
	for (uint32_t i = 0; i < GPUCACHE_MAX_CONTEXTS; i++)
		assert_non_null(gpc_record_counters_take(&rec, i + 1, 1, i % 2, &index));
	assert_true(gpc_record_append(&rec, GPUCACHE_REGION_CODES, code, sizeof code));
	gpc_record_append_line(&rec, "line");
	gpc_record_device(&rec, 1, &device);
	check_marks();
}

TEST(events_mark_their_pages_from_the_first_slot_on)
{
	struct gpucache_event event = { .kind = GPUCACHE_EVENT_MALLOC };

	for (uint64_t i = 0; i < 500; i++) {
		event.time_ns = 1 + i;
		gpc_record_event(&rec, &event);
	}
	check_marks();
}

TEST(a_page_that_becomes_zero_again_has_no_mark)
{
	struct gpucache_oom *oom = NULL;

	/* The second record of the ring reaches into a page that nothing else lies in yet. */
	for (uint32_t i = 0; i <= GPUCACHE_MAX_OOMS; i++) {
		oom = gpc_record_oom_begin(&rec);
		if (i < GPUCACHE_MAX_OOMS)
			memset(oom->kind_bytes, 1, sizeof oom->kind_bytes);
		gpc_record_oom_commit(&rec, oom);
		check_marks();
	}
	assert_true(is_marked(oom));
	oom = gpc_record_oom_begin(&rec);
	assert_false(is_marked(oom) && oom->time_ns);
	gpc_record_unmark(&rec, oom, sizeof *oom);
	assert_false(is_marked(oom) || is_marked((char *)oom + sizeof *oom - 1));
	gpc_record_mark(&rec, oom, sizeof *oom);
	check_marks();
}
