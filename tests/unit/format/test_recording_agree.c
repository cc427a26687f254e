/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"

/* A recording as the library wrote it before 1.3: whose regions agree. */
static void build(struct recording_builder *b)
{
	uint64_t python = GPUCACHE_FRAME_PYTHON | UINT64_C(1) << 32;
	struct gpucache_block *direct;

	builder_init(b);
	b->header->minor = 2;
	b->devices[0].seq = 2;
	b->counters[0].context = 7;
	b->counters[0].n_malloc = 40;
	builder_line(b, "cache on default");
	builder_code(b, "name", "file", 0x030b, 1, "", 0);
	builder_module(b, "/bin/a", 1, 2, 0);
	builder_stack(b, (uint64_t[]){ 1 }, 1, &python, 1);
	builder_tag(b, 0, "tag");
	for (int i = 0; i < 4; i++)
		builder_live(b, 1000, 1024, 1, i)->tag = 1;
	direct = builder_live(b, 50, 50, 1, 4);
	direct->segment = GPUCACHE_NO_SEGMENT;
	b->counters[0].n_blocks = 4;
	b->counters[0].direct_bytes = 50;
	b->counters[0].peak_live_bytes = 4096;
	b->counters[0].n_segments = 1;
	b->segments[0].seq = 2;
	b->segments[0].state = 1;
	b->sites[1].total_blocks = 5;
	b->peaks[0] = (struct gpucache_peak){ .seq = 2, .number = 1 };
	b->header->state |= GPUCACHE_STATE_OOM_SEEN;
	b->ooms[0] = (struct gpucache_oom){ .seq = 2, .number = 1 };
	for (int i = 0; i < 8; i++) {
		builder_event(b, GPUCACHE_EVENT_MALLOC, 1000, i);
		b->events[i].thread = 1 + (uint32_t)i % 2;
	}
}

/* What is wrong with it; each region at most once. */
static unsigned problems_of(struct recording_builder *b)
{
	char path[] = "/tmp/gpucache-test-XXXXXX";
	struct gpc_recording *rec = NULL;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);
	unsigned kinds = 0;

	close(mkstemp(path));
	builder_write(b, path);
	builder_fini(b);
	assert_int_equal(gpc_recording_open(path, &rec, &text), GPC_OK);
	unlink(path);
	for (unsigned i = 0; i < rec->n_problems; i++)
		kinds |= 1u << rec->problems[i].kind;
	gpc_recording_close(rec);
	return kinds;
}

static void a_whole_recording_agrees_with_itself(void **state)
{
	struct recording_builder b;

	(void)state;
	build(&b);
	assert_int_equal(problems_of(&b), 0);
	build(&b);
	b.header->state &= ~GPUCACHE_STATE_CLEAN_EXIT;
	assert_int_equal(problems_of(&b), 0);
	builder_init(&b);
	b.header->minor = 0;
	assert_int_equal(problems_of(&b), 0);
}

static void a_region_that_is_empty_is_missed_by_what_others_say(void **state)
{
	static const enum gpucache_region_kind kinds[] = { GPUCACHE_REGION_DEVICES,
		GPUCACHE_REGION_COUNTERS, GPUCACHE_REGION_SITES, GPUCACHE_REGION_STACKS,
		GPUCACHE_REGION_CODES, GPUCACHE_REGION_MODULES, GPUCACHE_REGION_TEXT,
		GPUCACHE_REGION_TAGS, GPUCACHE_REGION_SEGMENTS, GPUCACHE_REGION_BLOCKS,
		GPUCACHE_REGION_EVENTS, GPUCACHE_REGION_PEAKS, GPUCACHE_REGION_OOMS };
	struct recording_builder b;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		build(&b);
		if (kinds[i] == GPUCACHE_REGION_SEGMENTS) /* one operation may be in flight */
			b.counters[0].n_segments = 3;
		memset(builder_region(&b, kinds[i]), 0, builder_entry(&b, kinds[i])->size);
		assert_true(problems_of(&b) >> kinds[i] & 1);
	}
}

static void what_may_be_in_flight_is_one_operation_a_thread(void **state)
{
	struct recording_builder b;

	(void)state;
	for (unsigned killed = 0; killed <= 1; killed++) {
		for (unsigned n_lost = 0; n_lost <= 4; n_lost++) {
			/* Two threads; the one that ended the process was in no operation. */
			unsigned most = 1 + killed;

			build(&b);
			if (killed)
				b.header->state &= ~GPUCACHE_STATE_CLEAN_EXIT;
			for (unsigned i = 0; i < n_lost; i++)
				b.blocks[i].state = GPUCACHE_BLOCK_UNUSED;
			assert_int_equal(
				problems_of(&b), n_lost > most ? 1u << GPUCACHE_REGION_BLOCKS : 0);
		}
	}
}

static void a_number_of_records_may_be_one_behind(void **state)
{
	struct recording_builder b;

	(void)state;
	for (uint64_t n = 0; n <= 3; n++) {
		build(&b);
		builder_stack(&b, (uint64_t[]){ 2 }, 1, NULL, 0);
		((struct gpucache_append_head *)builder_region(&b, GPUCACHE_REGION_STACKS))
			->n_records = n;
		assert_int_equal(
			problems_of(&b), n == 1 || n == 2 ? 0 : 1u << GPUCACHE_REGION_STACKS);
	}
}

static void events_that_end_too_early_are_missed(void **state)
{
	struct recording_builder b;

	(void)state;
	build(&b);
	memset(b.events, 0, 8 * sizeof *b.events);
	b.events[0] = (struct gpucache_event){ .seq = 1, .time_ns = builder_ns(0), .thread = 1 };
	assert_int_equal(problems_of(&b), 1u << GPUCACHE_REGION_EVENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_recording_agrees_with_itself),
		cmocka_unit_test(a_region_that_is_empty_is_missed_by_what_others_say),
		cmocka_unit_test(what_may_be_in_flight_is_one_operation_a_thread),
		cmocka_unit_test(a_number_of_records_may_be_one_behind),
		cmocka_unit_test(events_that_end_too_early_are_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
