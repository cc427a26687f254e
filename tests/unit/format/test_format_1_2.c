/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format_1_2.h"

#include <string.h>
#include <unistd.h>

#include "tests/unit/format/recording_builder.h"
#include "tests/unit/unit.h"

#define SET_ASIDE (UINT64_C(1) << 63)

/* A record of COUNTERS as 1.2 has it. */
struct wide {
	struct gpucache_counters counters;
	uint64_t lanes[8][8];
};

static struct wide *open_wide(struct recording_builder *b, uint16_t minor)
{
	struct gpucache_region *region;

	builder_init(b);
	b->header->minor = minor;
	region = builder_entry(b, GPUCACHE_REGION_COUNTERS);
	region->record_size = sizeof(struct wide);
	region->count = region->size / sizeof(struct wide);
	return (void *)b->counters;
}

static struct gpc_recording *read_built(struct recording_builder *b)
{
	char path[] = "/tmp/gpucache-test-XXXXXX";
	struct gpc_recording *recording = NULL;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	close(mkstemp(path));
	builder_write(b, path);
	builder_fini(b);
	assert_int_equal(gpc_recording_open(path, &recording, &text), GPC_OK);
	unlink(path);
	return recording;
}

static struct gpucache_counters counters_of(struct recording_builder *b)
{
	struct gpc_recording *recording = read_built(b);
	struct gpucache_counters counters;

	assert_true(gpc_recording_read_counters(recording, 1, &counters));
	gpc_recording_close(recording);
	return counters;
}

static const struct wide example = {
	.counters = { .context = 1,
		.requested_bytes = 900,
		.live_bytes = 1024,
		.cached_bytes = 1024,
		.n_blocks = 2,
		.n_malloc = 5,
		.n_hit = 4,
		.n_free = 3 },
	/* allocations, frees, bytes of the free block, of them asked for */
	.lanes = { [1] = { 10, 11, 512, 400 }, [7] = { 100, 100 } },
};

static void lanes_are_a_part_of_their_counters(void **state)
{
	struct gpucache_counters counters;
	struct recording_builder b;

	(void)state;
	open_wide(&b, 2)[1] = example;
	counters = counters_of(&b);
	assert_int_equal(counters.n_malloc, 115);
	assert_int_equal(counters.n_hit, 114);
	assert_int_equal(counters.n_free, 114);
	assert_int_equal(counters.n_blocks, 1);
	assert_int_equal(counters.live_bytes, 512);
	assert_int_equal(counters.cached_bytes, 1536);
	assert_int_equal(counters.requested_bytes, 500);
}

static void other_versions_have_no_lanes(void **state)
{
	struct gpucache_counters counters;
	struct recording_builder b;

	(void)state;
	open_wide(&b, 3)[1] = example;
	counters = counters_of(&b);
	assert_memory_equal(&counters, &example.counters, 576);
}

/* A live record is not read at one moment. */
static void a_lane_that_is_newer_than_its_counters_takes_no_more_than_there_is(void **state)
{
	struct gpucache_counters counters;
	struct recording_builder b;

	(void)state;
	open_wide(&b, 2)[1] = (struct wide){ .counters = { .context = 1, .live_bytes = 512 },
		.lanes = { { 0, 0, 4096, 4000 } } };
	counters = counters_of(&b);
	assert_int_equal(counters.live_bytes, 0);
	assert_int_equal(counters.requested_bytes, 0);
	assert_int_equal(counters.n_blocks, 0);
}

/* Reads `n` events of a ring, behind which three numbers were set aside; says how many are there. */
static void expect_no_holes(int n, unsigned n_events)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpc_recording *recording;
	struct gpucache_event event;
	struct recording_builder b;
	unsigned n_read = 0;

	builder_init(&b);
	for (int i = 0; i < n; i++)
		builder_event(&b, GPUCACHE_EVENT_FREE, (uint64_t)i, i);
	b.events[4].seq = SET_ASIDE + 4;
	for (uint64_t i = (uint64_t)n; i < (uint64_t)n + 3; i++)
		b.events[i % BUILDER_EVENTS].seq = SET_ASIDE + i;
	recording = read_built(&b);
	while (gpc_recording_next_event(recording, &cursor, &event))
		n_read++;
	assert_int_equal(recording->end_event, n);
	assert_int_equal(n_read, n_events);
	assert_int_equal(cursor.n_holes, 0);
	gpc_recording_close(recording);
}

static void numbers_that_were_set_aside_are_no_holes(void **state)
{
	(void)state;
	expect_no_holes(10, 9);
}

static void numbers_set_aside_for_the_next_round_are_no_holes(void **state)
{
	(void)state;
	expect_no_holes(BUILDER_EVENTS + 2, BUILDER_EVENTS - 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_are_a_part_of_their_counters),
		cmocka_unit_test(other_versions_have_no_lanes),
		cmocka_unit_test(
			a_lane_that_is_newer_than_its_counters_takes_no_more_than_there_is),
		cmocka_unit_test(numbers_that_were_set_aside_are_no_holes),
		cmocka_unit_test(numbers_set_aside_for_the_next_round_are_no_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
