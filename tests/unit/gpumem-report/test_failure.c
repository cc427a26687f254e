/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts by replay: recordings of a few events on a GPU of 1 GiB, small enough to know the outcome of each replay by
 * counting segments of 2 MiB.
 */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"
#include "tools/gpumem-report/why/failure.h"

#define MIB    (UINT64_C(1) << 20)
#define DEVICE (1024 * MIB)
#define BASE   UINT64_C(0x7f0000000000)

static struct recording_builder builder;
static struct gpc_failure failure;
static char advice[400]; /* of a LIMIT */

static bool is_yes(uint64_t truth)
{
	return truth == GPC_YES;
}

static int set_up(void **state)
{
	builder_init(&builder);
	return 0;
}

static int tear_down(void **state)
{
	builder_fini(&builder);
	return 0;
}

FIXTURE(set_up, tear_down);

static struct gpucache_event *add(enum gpucache_event_kind kind, unsigned block, uint64_t mib)
{
	struct gpucache_event *event = &builder.events[builder.n_events];

	builder_event(&builder, kind, mib * MIB, (double)builder.n_events);
	event->alloc_kind = GPUCACHE_KIND_DEVICE;
	event->address = BASE + (uint64_t)block * DEVICE;
	return event;
}

static void takes(unsigned block, uint64_t mib)
{
	add(GPUCACHE_EVENT_MALLOC, block, mib);
}

static void gives_back(unsigned block, uint64_t mib)
{
	add(GPUCACHE_EVENT_FREE, block, mib);
}

static void holds(unsigned block, uint64_t mib)
{
	builder_live(&builder, mib * MIB, mib * MIB, 1, 0)->address = BASE + block * DEVICE;
}

/* The request fails with so much free, as the library judged. */
static struct gpucache_oom *fails(
	uint64_t mib, uint64_t live, uint64_t cached, enum gpucache_verdict verdict)
{
	struct gpucache_oom *oom = &builder.ooms[0];

	add(GPUCACHE_EVENT_OOM, 0, mib);
	*oom = (struct gpucache_oom){
		.seq = 2,
		.number = 1,
		.time_ns = builder.events[builder.n_events - 1].time_ns,
		.requested = mib * MIB,
		.rounded = mib * MIB,
		.short_by = (mib - (DEVICE / MIB - live - cached)) * MIB,
		.kind = GPUCACHE_KIND_DEVICE,
		.verdict = (uint8_t)verdict,
		.strength = GPUCACHE_STRENGTH_LIKELY,
	};
	oom->balance = (struct gpucache_balance){ .requested = live * MIB,
		.cached = cached * MIB,
		.device_free = DEVICE - (live + cached) * MIB,
		.device_total = DEVICE };
	return oom;
}

static void ask(void)
{
	struct gpc_report report = { .recording = open_written(&builder) };
	struct gpc_text text = gpc_text_init(advice, sizeof advice);
	const char *reach;

	gpc_failure_explain(&report, &builder.ooms[0], &failure);
	if (failure.answer.cause == GPUCACHE_VERDICT_LIMIT)
		(void)gpc_failure_say_try(&failure, 0, &text, &reach);
	gpc_recording_close(report.recording);
}

static void is_found(enum gpucache_verdict verdict, enum gpucache_strength strength)
{
	assert_int_equal(failure.answer.cause, verdict);
	assert_int_equal(failure.answer.strength, strength);
}

/* 96 MiB lie at the beginning of a segment of 256, so that no 832 MiB in a row are left of 928. */
static void cut_a_segment(void)
{
	takes(1, 256);
	gives_back(1, 256);
	takes(2, 96);
	holds(2, 96);
	fails(832, 96, 160, GPUCACHE_VERDICT_FRAGMENTED);
}

TEST(pieces_are_to_blame_where_the_driver_alone_had_room)
{
	cut_a_segment();
	ask();
	is_found(GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_STRENGTH_CERTAIN);
	assert_true(is_yes(failure.facts.is_replayed) && is_yes(failure.facts.is_whole) &&
		    is_yes(failure.facts.plain_serves));
	assert_int_equal(failure.facts.plain_free, DEVICE - 928 * MIB);
	assert_string_equal(failure.facts.remedy, "vmm:on");
	assert_int_equal(failure.facts.remedy_free, DEVICE - 928 * MIB);
	assert_string_equal(failure.facts.remedy2, "max_split_size_mb:256");
}

TEST(whole_segments_are_replayed_as_those_of_the_driver)
{
	builder_line(&builder, "own cache: PyTorch");
	cut_a_segment();
	ask();
	assert_false(is_yes(failure.facts.is_replayed)); /* no piece of ours was in the way */
	assert_null(failure.facts.remedy);
}

TEST(a_setting_of_the_run_is_not_advised)
{
	builder_line(&builder, "max_split_size_mb 512 GPUCACHE_CONF");
	cut_a_segment();
	ask();
	assert_string_equal(failure.facts.remedy, "vmm:on");
	assert_string_equal(failure.facts.remedy2, "cache:off");
	assert_int_equal(failure.facts.remedy2_free, DEVICE - 928 * MIB);
}

TEST(a_run_that_had_pages_is_replayed_with_pages)
{
	builder_line(&builder, "vmm on GPUCACHE_CONF");
	cut_a_segment();
	ask();
	assert_false(is_yes(
		failure.facts
			.is_replayed)); /* it serves the request: something else was in the way */
	assert_null(failure.facts.remedy);
}

TEST(nothing_is_certain_of_a_run_whose_beginning_is_lost)
{
	/* It lives, and no event says since when. */
	holds(9, 2);
	cut_a_segment();
	builder.ooms[0].balance.requested += 2 * MIB;
	builder.ooms[0].balance.device_free -= 2 * MIB;
	ask();
	assert_true(is_yes(failure.facts.is_replayed) && !is_yes(failure.facts.is_whole));
	is_found(GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_STRENGTH_LIKELY);
}

TEST(a_replay_that_serves_the_request_decides_nothing)
{
	holds(2, 96);
	takes(2, 96);
	fails(160, 96, 896, GPUCACHE_VERDICT_FRAGMENTED);
	ask();
	assert_false(is_yes(failure.facts.is_replayed) || is_yes(failure.facts.plain_serves));
	assert_null(failure.facts.remedy);
	is_found(GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_STRENGTH_LIKELY);
}

TEST(exhausted_is_told_with_the_bytes_that_would_do)
{
	for (unsigned i = 1; i <= 3; i++) {
		takes(i, 320);
		holds(i, 320);
	}
	fails(80, 960, 0, GPUCACHE_VERDICT_EXHAUSTED);
	/* Another library holds 16 MiB of a larger device: so much may be missing there. */
	builder.ooms[0].balance.device_total += 16 * MIB;
	ask();
	assert_true(is_yes(failure.facts.is_replayed) && !is_yes(failure.facts.plain_serves));
	is_found(GPUCACHE_VERDICT_EXHAUSTED, GPUCACHE_STRENGTH_CERTAIN);
	assert_int_equal(failure.facts.enough, 16 * MIB);
}

/* 20 MiB are held, and the limit of 30 MiB refuses 20 more. */
static void a_limit_refuses(void)
{
	struct gpucache_oom *oom;

	takes(1, 20);
	holds(1, 20);
	oom = fails(20, 20, 0, GPUCACHE_VERDICT_LIMIT);
	oom->limit = 30 * MIB;
	oom->short_by = 10 * MIB;
	ask();
}

TEST(a_limit_is_told_with_the_bytes_above_it)
{
	a_limit_refuses();
	is_found(GPUCACHE_VERDICT_LIMIT, GPUCACHE_STRENGTH_CERTAIN);
	assert_int_equal(failure.facts.enough, 10 * MIB);
	assert_null(failure.facts.remedy);
	assert_non_null(strstr(advice, "limit:60MiB in")); /* a segment more */
}

static void passes(uint32_t thread, unsigned block, uint64_t mib)
{
	add(GPUCACHE_EVENT_MALLOC, block, mib)->thread = thread;
	add(GPUCACHE_EVENT_FREE, block, mib)->thread = thread;
}

TEST(a_limit_has_room_for_the_largest_of_each_other_thread)
{
	passes(7, 2, 1);
	a_limit_refuses();
	assert_non_null(strstr(advice, "limit:60MiB in"));
	builder.n_events = 0;
	passes(7, 2, 18);
	passes(8, 3, 4);
	passes(8, 3, 8);
	a_limit_refuses();
	assert_non_null(strstr(advice, "limit:66MiB in"));
}

TEST(growth_comes_before_pieces_and_needs_no_replay)
{
	cut_a_segment();
	builder.ooms[0].growth_bytes = 96 * MIB;
	builder.ooms[0].growth_stack = builder.ooms[0].stack = 1;
	builder.ooms[0].growth_blocks = 1000;
	builder.ooms[0].growth_held = 96 * MIB;
	ask();
	is_found(GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY);
	assert_false(is_yes(failure.facts.is_replayed));
	assert_int_equal(failure.answer.also, 1u << GPUCACHE_VERDICT_FRAGMENTED);
}

TEST(without_a_cache_nothing_is_replayed)
{
	builder_line(&builder, "cache off GPUCACHE_CONF");
	cut_a_segment();
	ask();
	assert_false(is_yes(failure.facts.is_replayed));
	assert_null(failure.facts.remedy);
}

TEST(the_request_has_to_be_among_the_events)
{
	cut_a_segment();
	builder.ooms[0].requested++;
	ask();
	assert_false(is_yes(failure.facts.is_replayed));
}
