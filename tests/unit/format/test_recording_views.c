/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"

TEST(events_come_oldest_first_after_the_ring_went_round)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	struct recording_builder b;
	struct gpc_recording *rec;
	uint64_t expected = 100 - BUILDER_EVENTS;

	builder_init(&b);
	for (int i = 0; i < 100; i++)
		builder_event(&b, GPUCACHE_EVENT_MALLOC, (uint64_t)i, i);
	rec = open_built(&b);
	while (gpc_recording_next_event(rec, &cursor, &event))
		assert_int_equal(event.size, expected++);
	assert_int_equal(expected, 100);
	assert_int_equal(cursor.n_holes, 0);
	gpc_recording_close(rec);
}

/* Reads the events of a recording of which `end_event` numbers were given. */
static void expect_events(
	struct recording_builder *b, uint64_t end_event, unsigned n_events, unsigned n_holes)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpc_recording *rec = open_built(b);
	struct gpucache_event event;
	unsigned n = 0;

	while (gpc_recording_next_event(rec, &cursor, &event))
		n++;
	assert_int_equal(rec->end_event, end_event);
	assert_int_equal(n, n_events);
	assert_int_equal(cursor.n_holes, n_holes);
	gpc_recording_close(rec);
}

static void build_events(struct recording_builder *b, int n)
{
	builder_init(b);
	for (int i = 0; i < n; i++)
		builder_event(b, GPUCACHE_EVENT_FREE, (uint64_t)i, i);
}

TEST(holes_are_skipped_and_counted)
{
	struct recording_builder b;

	build_events(&b, 10);
	b.events[3].seq = 0;
	b.events[6].seq = UINT64_MAX; /* in the wrong slot: not the newest, whatever it says */
	expect_events(&b, 10, 8, 2);
}

TEST(the_peak_with_the_higher_number_counts_unless_it_is_torn)
{
	struct recording_builder b;
	struct gpucache_peak peak;
	struct gpc_recording *rec;

	for (uint32_t seq = 4; seq <= 5; seq++) {
		builder_init(&b);
		b.peaks[0] = (struct gpucache_peak){ .seq = 2, .number = 8, .live_bytes = 80 };
		b.peaks[1] = (struct gpucache_peak){
			.seq = seq, .number = 9, .live_bytes = 90, .n_holders = 9999
		};
		b.peaks[2] = (struct gpucache_peak){
			.seq = 2, .number = 50, .device = 1, .live_bytes = 1
		};
		rec = open_built(&b);
		assert_true(gpc_recording_find_peak(rec, 0, &peak));
		assert_int_equal(peak.live_bytes, seq == 4 ? 90 : 80);
		assert_true(peak.n_holders <= GPUCACHE_MAX_HOLDERS);
		assert_false(gpc_recording_find_peak(rec, 2, &peak));
		gpc_recording_close(rec);
	}
}

TEST(the_newest_oom_is_found_and_its_counts_are_bounded)
{
	struct recording_builder b;
	struct gpucache_oom oom;
	struct gpc_recording *rec;

	builder_init(&b);
	b.ooms[0] = (struct gpucache_oom){ .seq = 2, .number = 5 };
	b.ooms[1] = (struct gpucache_oom){ .seq = 2,
		.number = 6,
		.n_holders = UINT32_MAX,
		.n_rungs = UINT32_MAX,
		.n_neighbours = UINT32_MAX,
		.n_tags = UINT32_MAX,
		.verdict = 200,
		.strength = 200 };
	b.ooms[2] = (struct gpucache_oom){ .seq = 3, .number = 7 };
	memset(b.ooms[1].neighbours[0].name, 'n', sizeof b.ooms[1].neighbours[0].name);
	rec = open_built(&b);
	assert_true(gpc_recording_find_oom(rec, 0, &oom));
	assert_int_equal(oom.number, 6);
	assert_int_equal(oom.n_holders, GPUCACHE_MAX_OOM_HOLDERS);
	assert_int_equal(oom.n_rungs, GPUCACHE_MAX_RUNGS);
	assert_int_equal(oom.n_neighbours, GPUCACHE_MAX_NEIGHBOURS);
	assert_int_equal(oom.n_tags, GPUCACHE_MAX_OOM_TAGS);
	assert_int_equal(oom.verdict, GPUCACHE_VERDICT_NONE);
	assert_int_equal(strlen(oom.neighbours[0].name), sizeof oom.neighbours[0].name - 1);
	assert_true(gpc_recording_find_oom(rec, 5, &oom));
	assert_int_equal(oom.number, 5);
	assert_false(gpc_recording_find_oom(rec, 7, &oom));
	gpc_recording_close(rec);
}

TEST(texts_of_a_device_end_within_their_fields)
{
	struct recording_builder b;
	struct gpucache_device device;
	struct gpc_recording *rec;

	builder_init(&b);
	b.devices[0] = (struct gpucache_device){ .seq = 2 };
	memset(b.devices[0].name, 'n', sizeof b.devices[0].name);
	memset(b.devices[0].uuid, 'u', sizeof b.devices[0].uuid);
	memset(b.devices[0].pci_bus_id, 'p', sizeof b.devices[0].pci_bus_id);
	rec = open_built(&b);
	assert_true(gpc_recording_read_device(rec, 0, &device));
	assert_int_equal(strnlen(device.name, sizeof device.name), sizeof device.name - 1);
	assert_int_equal(strnlen(device.uuid, sizeof device.uuid), sizeof device.uuid - 1);
	assert_int_equal(
		strnlen(device.pci_bus_id, sizeof device.pci_bus_id), sizeof device.pci_bus_id - 1);
	gpc_recording_close(rec);
}

TEST(history_gives_the_live_buffer_only)
{
	struct gpc_history_view history;
	struct recording_builder b;
	struct gpucache_point *points;
	struct gpc_recording *rec;

	builder_init(&b);
	points = (void *)(b.history + 1);
	b.history->max_points = BUILDER_POINTS;
	b.history->live_buffer = 1;
	b.history->n_points[0] = 3;
	b.history->n_points[1] = 2;
	b.history->interval_ns = 1000;
	points[BUILDER_POINTS + 1].live_bytes = 77;
	rec = open_built(&b);
	assert_true(gpc_recording_read_history(rec, 0, &history));
	assert_int_equal(history.n_points, 2);
	assert_int_equal(history.points[1].live_bytes, 77);
	assert_int_equal(history.interval_ns, 1000);
	/* The second device's record was never written. */
	assert_false(gpc_recording_read_history(rec, 1, &history));
	gpc_recording_close(rec);
}

TEST(a_history_that_claims_more_points_than_fit_is_not_read)
{
	struct gpc_history_view history;
	struct recording_builder b;
	struct gpc_recording *rec;

	for (int what = 0; what < 3; what++) {
		builder_init(&b);
		b.history->max_points = what == 0 ? 2 * BUILDER_POINTS : BUILDER_POINTS;
		b.history->n_points[0] = what == 1 ? BUILDER_POINTS + 1 : 1;
		b.history->live_buffer = what == 2 ? 2 : 0;
		rec = open_built(&b);
		assert_false(gpc_recording_read_history(rec, 0, &history));
		gpc_recording_close(rec);
	}
}

TEST(slots_that_were_never_written_are_not_in_use)
{
	struct gpucache_counters counters;
	struct gpucache_segment segment;
	struct gpucache_device device;
	struct gpucache_site site;
	struct gpucache_block block;
	struct recording_builder b;
	struct gpc_recording *rec;

	builder_init(&b);
	b.devices[1].seq = 2;
	b.devices[1].ordinal = -1;
	rec = open_built(&b);
	assert_false(gpc_recording_read_device(rec, 0, &device));
	assert_false(gpc_recording_read_device(rec, 1, &device));
	assert_false(gpc_recording_read_counters(rec, 0, &counters));
	assert_false(gpc_recording_read_block(rec, 0, &block));
	assert_false(gpc_recording_read_segment(rec, 0, &segment));
	assert_false(gpc_recording_read_site(rec, 0, &site));
	assert_false(gpc_recording_read_site(rec, UINT32_MAX, &site));
	gpc_recording_close(rec);
}

TEST(pytorchs_reports_are_found_for_its_devices)
{
	struct gpucache_torch *records;
	struct gpucache_torch torch;
	struct recording_builder b;
	struct gpc_recording *rec;

	builder_init(&b);
	records = builder_region(&b, GPUCACHE_REGION_TORCH);
	records[0].reserved_bytes = 5;
	records[1] = (struct gpucache_torch){ .n_malloc = 1, .reserved_bytes = 7 };
	rec = open_built(&b);
	assert_false(gpc_recording_find_torch(rec, -1, &torch));
	assert_false(gpc_recording_find_torch(rec, 0, &torch));
	assert_true(gpc_recording_find_torch(rec, 1, &torch));
	assert_int_equal(torch.reserved_bytes, 7);
	assert_false(gpc_recording_find_torch(rec, 2, &torch));
	gpc_recording_close(rec);
}

TEST(a_site_without_a_stack_is_not_used)
{
	struct gpucache_site site;
	struct recording_builder b;
	struct gpc_recording *rec;

	builder_init(&b);
	b.sites[5].total_blocks = 1;
	b.sites[6] = (struct gpucache_site){ .total_blocks = 1, .stack = 9, .device = 1 };
	rec = open_built(&b);
	assert_false(gpc_recording_read_site(rec, 5, &site));
	assert_true(gpc_recording_read_site(rec, 6, &site));
	assert_int_equal(site.stack, 9);
	gpc_recording_close(rec);
}

TEST(the_last_moment_is_the_clean_end_or_the_last_thing_seen)
{
	struct recording_builder b;
	struct gpc_recording *rec;

	for (int clean = 0; clean < 2; clean++) {
		builder_init(&b);
		builder_event(&b, GPUCACHE_EVENT_FREE, 1, 10);
		b.ooms[0] =
			(struct gpucache_oom){ .seq = 2, .number = 1, .time_ns = builder_ns(20) };
		if (!clean)
			b.header->end_ns = 0;
		rec = open_built(&b);
		assert_int_equal(gpc_recording_last_ns(rec), builder_ns(clean ? 723 : 20));
		gpc_recording_close(rec);
	}
}
