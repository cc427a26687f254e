/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "format/streams.h"
#include "tests/unit/format/built.h"

static struct gpc_recording *rec;

static int open_streams(void **state)
{
	struct gpucache_stream *streams;
	struct recording_builder b;

	builder_init(&b);
	streams = builder_region(&b, GPUCACHE_REGION_STREAMS);
	streams[1].handle = GPUCACHE_STREAM_LEGACY;
	streams[2].handle = 0x55d0c8;
	streams[3].handle = GPUCACHE_STREAM_PER_THREAD;
	streams[4] = (struct gpucache_stream){ .handle = 0x55d0c8, .end_ns = 7 };
	rec = open_built(&b);
	return 0;
}

static int close_streams(void **state)
{
	gpc_recording_close(rec);
	return 0;
}

GROUP(open_streams, close_streams);

static void expect_said(uint32_t number, const char *wanted)
{
	char buf[64];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_recording_add_stream(rec, number, &text);
	assert_string_equal(buf, wanted);
}

TEST(a_stream_is_said_by_name_or_by_number_and_handle)
{
	expect_said(0, "none named");
	expect_said(1, "legacy");
	expect_said(2, "2 (0x55d0c8)");
	expect_said(3, "per-thread");
	expect_said(4, "4 (0x55d0c8)");
	expect_said(5, "5");
	expect_said(200, "200");
	expect_said(GPUCACHE_STREAM_OTHER, "others");
}

/* Which of the numbers 0 to 5 are meant. */
static void expect_meant(const char *wanted, unsigned bits)
{
	assert_true(gpc_stream_is_wish(wanted));
	for (uint32_t number = 0; number <= 5; number++)
		assert_int_equal(gpc_recording_is_stream(rec, number, wanted), bits >> number & 1);
}

TEST(a_person_names_it_by_each_of_these)
{
	expect_meant("none", 1);
	expect_meant("legacy", 1 << 1);
	expect_meant("per-thread", 1 << 3);
	expect_meant("2", 1 << 2);
	expect_meant("5", 1 << 5);
	expect_meant("0x55d0c8", 1 << 2 | 1 << 4);
	expect_meant("5624008", 1 << 2 | 1 << 4);
	expect_meant("0x99", 0);
	assert_true(gpc_recording_is_stream(rec, GPUCACHE_STREAM_OTHER, "255"));
}

TEST(anything_else_is_no_stream)
{
	static const char *const wrong[] = { "", "0", "main", "-1", "2x", " 2", "0x" };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(gpc_stream_is_wish(wrong[i]));
}
