/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"

#define MIB (UINT64_C(1) << 20)

static int begin(void **state)
{
	const uint64_t frames[] = { 0x1010, 0x2020 };
	struct recording_file *file;

	recording_file_begin(state);
	file = *state;
	builder_stack(&file->b, frames, 2, NULL, 0);
	builder_code(&file->b, "f", "f.py", 0x030b, 1, "abc", 3);
	builder_module(&file->b, "/bin/x", 0x1000, 0x3000, 0);
	builder_line(&file->b, "cache on default");
	file->b.counters[0].context = 1;
	file->b.devices[0].seq = 2;
	file->b.devices[0].total_bytes = 16 * MIB;
	file->b.ooms[0] = (struct gpucache_oom){ .seq = 2, .number = 1, .time_ns = builder_ns(2) };
	builder_live(&file->b, 1000, 1024, 1, 1);
	for (int i = 0; i < 20; i++)
		builder_event(&file->b, GPUCACHE_EVENT_MALLOC, 100, i);
	return 0;
}

FIXTURE(begin, recording_file_end);

/* Opens what the builder holds; NULL with the status where that is refused. */
static struct gpc_recording *open_file(struct recording_file *file, enum gpc_status *ret_status)
{
	struct gpc_recording *recording = NULL;
	char why[200];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	builder_write(&file->b, file->path);
	*ret_status = gpc_recording_open(file->path, &recording, &text);
	if (*ret_status != GPC_OK) {
		assert_null(recording);
		assert_true(text.len > 0);
	}
	return recording;
}

/* Asks for everything that a recording can be asked for. */
static void walk(const struct gpc_recording *rec)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpc_history_view history;
	struct gpc_module_view module;
	struct gpc_stack_view stack;
	struct gpc_code_view code;
	struct gpucache_event event;
	struct gpucache_block block;
	struct gpucache_site site;
	struct gpucache_peak peak;
	struct gpucache_oom oom;
	uint64_t sum = 0;
	const char *line;
	size_t size;

	while (gpc_recording_next_event(rec, &cursor, &event))
		sum += event.size;
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(rec, i, &block))
			sum += block.size + (gpc_recording_read_site(rec, block.stack, &site)
							    ? site.live_bytes
							    : 0);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_HISTORY].count; i++)
		if (gpc_recording_read_history(rec, i, &history))
			for (size_t p = 0; p < history.n_points; p++)
				sum += history.points[p].live_bytes;
	for (size_t i = 0; i < rec->n_stacks; i++)
		if (gpc_recording_find_stack(rec, rec->stacks[i].id, &stack))
			for (unsigned f = 0; f < stack.n_native + stack.n_python; f++)
				sum += stack.native[f];
	for (size_t i = 0; i < rec->n_codes; i++)
		if (gpc_recording_find_code(rec, rec->codes[i].id, &code))
			for (size_t c = 0; c < code.name_size + code.file_size + code.lines_size;
				c++)
				sum += (unsigned char)code.name[c];
	for (size_t i = 0; gpc_recording_read_module(rec, i, &module); i++)
		sum += strlen(module.path);
	for (size_t i = 0; gpc_recording_read_text(rec, i, &line, &size); i++)
		sum += size + (unsigned char)line[0];
	if (gpc_recording_find_peak(rec, 0, &peak))
		for (unsigned h = 0; h < peak.n_holders; h++)
			sum += peak.holders[h].bytes;
	if (gpc_recording_find_oom(rec, 0, &oom))
		for (unsigned h = 0; h < oom.n_holders; h++)
			sum += oom.holders[h].bytes + strlen(oom.neighbours[0].name);
	sum += gpc_recording_last_ns(rec);
	/* The sum only keeps the reads from being optimised away. */
	assert_true(sum != 1);
}

TEST(a_whole_recording_opens_without_problems)
{
	enum gpc_status status;
	struct gpc_recording *rec = open_file(*state, &status);

	assert_int_equal(status, GPC_OK);
	assert_int_equal(rec->n_problems, 0);
	assert_int_equal(rec->run_state, GPC_RUN_ENDED);
	assert_string_equal(rec->header.host, "gpu07");
	walk(rec);
	gpc_recording_close(rec);
}

TEST(a_header_cut_anywhere_is_refused_and_a_file_cut_later_is_read_as_far_as_it_goes)
{
	struct recording_file *file = *state;
	struct gpc_recording *rec;
	char why[200];

	builder_write(&file->b, file->path);
	for (off_t size = GPUCACHE_PAGE; size >= 0; size -= 64) {
		struct gpc_text text = gpc_text_init(why, sizeof why);
		enum gpc_status status;

		rec = NULL;
		assert_int_equal(truncate(file->path, size), 0);
		status = gpc_recording_open(file->path, &rec, &text);
		if (size >= (off_t)sizeof(struct gpucache_header)) {
			assert_int_equal(status, GPC_OK);
			assert_true(rec->n_problems > 0);
			walk(rec);
			gpc_recording_close(rec);
		} else {
			assert_int_equal(status, size < 16 ? GPC_INVALID : GPC_DAMAGED);
			assert_true(text.len > 0);
		}
	}
}

TEST(a_file_cut_between_regions_gives_the_regions_before_the_cut)
{
	struct recording_file *file = *state;
	uint64_t end = builder_entry(&file->b, GPUCACHE_REGION_BLOCKS)->offset;
	struct gpc_recording *rec = NULL;
	char why[200];
	struct gpc_text text = gpc_text_init(why, sizeof why);
	struct gpucache_counters counters;

	builder_write(&file->b, file->path);
	assert_int_equal(truncate(file->path, (off_t)end + 100), 0);
	assert_int_equal(gpc_recording_open(file->path, &rec, &text), GPC_OK);
	assert_true(gpc_recording_read_counters(rec, 0, &counters));
	assert_int_equal(rec->n_stacks, 1);
	assert_int_equal(rec->regions[GPUCACHE_REGION_BLOCKS].count, 1);
	assert_int_equal(rec->problems[0].kind, GPUCACHE_REGION_NONE);
	assert_int_equal(rec->problems[1].kind, GPUCACHE_REGION_BLOCKS);
	walk(rec);
	gpc_recording_close(rec);
}

TEST(a_file_cut_at_a_region_names_what_is_lost_and_gives_the_rest)
{
	struct recording_file *file = *state;
	const struct gpucache_region *regions = file->b.header->regions;

	for (uint32_t cut = 0; cut < file->b.header->n_regions; cut++) {
		struct gpc_recording *rec = NULL;
		char why[200];
		struct gpc_text text = gpc_text_init(why, sizeof why);

		builder_write(&file->b, file->path);
		assert_int_equal(truncate(file->path, (off_t)regions[cut].offset), 0);
		assert_int_equal(gpc_recording_open(file->path, &rec, &text), GPC_OK);
		assert_true(gpc_recording_has_problem(rec, GPUCACHE_REGION_NONE));
		for (uint32_t i = 0; i < file->b.header->n_regions; i++)
			assert_int_equal(gpc_recording_has_problem(
						 rec, (enum gpucache_region_kind)regions[i].kind),
				regions[i].offset >= regions[cut].offset);
		walk(rec);
		gpc_recording_close(rec);
	}
}

TEST(every_flipped_bit_of_header_and_region_table_is_survived)
{
	struct recording_file *file = *state;
	size_t n_refused = 0;
	size_t n_noticed = 0;
	size_t n_too_old = 0;

	for (size_t bit = 0; bit < sizeof(struct gpucache_header) * 8; bit++) {
		enum gpc_status status;
		struct gpc_recording *rec;

		file->b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		/* What is cut to nothing and written anew goes to the disk at once; what is new does not. */
		unlink(file->path);
		rec = open_file(file, &status);
		n_refused += rec == NULL;
		if (rec) {
			n_noticed += rec->n_problems > 0;
			walk(rec);
		}
		gpc_recording_close(rec);
		file->b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	for (unsigned bit = 0; bit < 16; bit++)
		n_too_old += (GPUCACHE_FORMAT_MINOR ^ 1u << bit) < GPUCACHE_FORMAT_OLDEST;
	/* Magic, byte order, major and the bit `opened` cannot flip unnoticed: 128 + 32 + 16 + 1. */
	assert_int_equal(n_refused, 177 + n_too_old);
	assert_true(n_noticed > 500);
}

TEST(noise_in_every_region_is_survived)
{
	struct recording_file *file = *state;
	uint32_t seed = 4711;

	for (int round = 0; round < 60; round++) {
		unsigned char *copy = malloc(file->b.size);
		enum gpc_status status;
		struct gpc_recording *rec;

		memcpy(copy, file->b.data, file->b.size);
		for (size_t i = GPUCACHE_PAGE; i < file->b.size; i++) {
			seed = seed * 1664525 + 1013904223;
			/* Some rounds replace all, others every 64th byte. */
			if (round % 3 == 0 || (seed >> 10) % 64 == 0)
				file->b.data[i] = (unsigned char)(seed >> 24);
		}
		rec = open_file(file, &status);
		assert_non_null(rec);
		walk(rec);
		gpc_recording_close(rec);
		memcpy(file->b.data, copy, file->b.size);
		free(copy);
	}
}

TEST(a_file_of_the_other_byte_order_is_refused_by_version)
{
	struct recording_file *file = *state;
	enum gpc_status status;

	file->b.header->endian = __builtin_bswap32(GPUCACHE_ENDIAN);
	assert_null(open_file(file, &status));
	assert_int_equal(status, GPC_VERSION);
}

TEST(another_major_version_is_refused_by_version)
{
	struct recording_file *file = *state;
	enum gpc_status status;

	file->b.header->major = GPUCACHE_FORMAT_MAJOR + 1;
	assert_null(open_file(file, &status));
	assert_int_equal(status, GPC_VERSION);
}

TEST(a_recording_from_before_the_first_release_is_refused)
{
	struct recording_file *file = *state;
	enum gpc_status status;

	file->b.header->minor = GPUCACHE_FORMAT_OLDEST - 1;
	assert_null(open_file(file, &status));
	assert_int_equal(status, GPC_VERSION);
}

TEST(a_recording_that_is_only_starting_is_refused)
{
	struct recording_file *file = *state;
	enum gpc_status status;

	file->b.header->state = 0;
	assert_null(open_file(file, &status));
	assert_int_equal(status, GPC_DAMAGED);
}

TEST(longer_records_and_unknown_regions_of_a_newer_minor_are_read)
{
	struct recording_file *file = *state;
	struct gpucache_region *region = builder_entry(&file->b, GPUCACHE_REGION_COUNTERS);
	enum {
		LONGER = sizeof(struct gpucache_counters) + 64
	};
	struct gpucache_counters *second;
	struct gpucache_counters counters;
	enum gpc_status status;
	struct gpc_recording *rec;

	file->b.header->minor = GPUCACHE_FORMAT_MINOR + 7;
	region->record_size = LONGER;
	region->count = 2;
	second = (void *)((char *)file->b.counters + LONGER);
	*second = file->b.counters[0];
	second->n_malloc = 42;
	memset(second + 1, 0xff, LONGER - sizeof *second);
	builder_entry(&file->b, GPUCACHE_REGION_HISTORY)->kind = GPUCACHE_REGION_COUNT + 5;
	rec = open_file(file, &status);
	assert_int_equal(status, GPC_OK);
	assert_int_equal(rec->n_problems, 0);
	assert_true(gpc_recording_read_counters(rec, 1, &counters));
	assert_int_equal(counters.n_malloc, 42);
	assert_false(rec->regions[GPUCACHE_REGION_HISTORY].present);
	walk(rec);
	gpc_recording_close(rec);
}

TEST(fields_beyond_a_shorter_record_are_zero)
{
	struct recording_file *file = *state;
	struct gpucache_region *region = builder_entry(&file->b, GPUCACHE_REGION_COUNTERS);
	struct gpucache_counters counters;
	enum gpc_status status;
	struct gpc_recording *rec;

	file->b.counters[0].n_segments = 5;
	file->b.counters[0].kind_bytes[0] = 6;
	region->record_size = offsetof(struct gpucache_counters, kind_bytes);
	rec = open_file(file, &status);
	memset(&counters, 0xff, sizeof counters);
	assert_true(gpc_recording_read_counters(rec, 0, &counters));
	assert_int_equal(counters.n_segments, 5);
	for (int i = 0; i < GPUCACHE_MAX_KINDS; i++)
		assert_int_equal(counters.kind_bytes[i], 0);
	gpc_recording_close(rec);
}

TEST(a_hostile_region_is_named_and_the_others_are_read)
{
	static const struct gpucache_region hostile[] = {
		{ .offset = 0, .size = 4096, .record_size = 64, .count = 1 },
		{ .offset = 4097, .size = 4096, .record_size = 64, .count = 1 },
		{ .offset = UINT64_MAX - 4095, .size = 4096, .record_size = 64, .count = 1 },
		{ .offset = 8192, .size = UINT64_MAX, .record_size = 64, .count = UINT64_MAX },
		{ .offset = 8192, .size = 4096, .record_size = 0, .count = UINT64_MAX },
		{ .offset = 8192, .size = 4096, .record_size = 4, .count = 1 },
		{ .offset = 8192, .size = 4096, .record_size = 56, .count = 1 },
		{ .offset = 8192, .size = 4096, .record_size = UINT32_MAX - 7, .count = 1 },
		{ .offset = 8192, .size = 4096, .record_size = 64, .count = UINT64_MAX / 32 },
	};
	struct recording_file *file = *state;
	struct gpucache_region *region = builder_entry(&file->b, GPUCACHE_REGION_BLOCKS);

	for (size_t i = 0; i < N_OF(hostile); i++) {
		enum gpc_status status;
		struct gpc_recording *rec;

		*region = hostile[i];
		region->kind = GPUCACHE_REGION_BLOCKS;
		rec = open_file(file, &status);
		assert_int_equal(status, GPC_OK);
		assert_true(rec->n_problems >= 1);
		assert_int_equal(rec->problems[0].kind, GPUCACHE_REGION_BLOCKS);
		assert_int_equal(rec->n_stacks, 1);
		walk(rec);
		gpc_recording_close(rec);
	}
}

TEST(a_region_named_twice_counts_once)
{
	struct recording_file *file = *state;
	enum gpc_status status;
	struct gpc_recording *rec;

	builder_entry(&file->b, GPUCACHE_REGION_SITES)->kind = GPUCACHE_REGION_DEVICES;
	rec = open_file(file, &status);
	assert_int_equal(rec->n_problems, 1);
	assert_int_equal(rec->problems[0].kind, GPUCACHE_REGION_DEVICES);
	assert_int_equal(
		rec->regions[GPUCACHE_REGION_DEVICES].record_size, sizeof(struct gpucache_device));
	gpc_recording_close(rec);
}

TEST(an_odd_slot_of_a_dead_process_is_torn_and_never_given)
{
	struct recording_file *file = *state;
	struct gpucache_block block;
	enum gpc_status status;
	struct gpc_recording *rec;

	file->b.blocks[0].seq = 3;
	rec = open_file(file, &status);
	assert_int_equal(rec->regions[GPUCACHE_REGION_BLOCKS].n_torn, 1);
	assert_int_equal(gpc_recording_read(rec, GPUCACHE_REGION_BLOCKS, 0, &block, sizeof block),
		GPC_SLOT_TORN);
	assert_false(gpc_recording_read_block(rec, 0, &block));
	assert_int_equal(gpc_recording_read(
				 rec, GPUCACHE_REGION_BLOCKS, BUILDER_BLOCKS, &block, sizeof block),
		GPC_SLOT_NONE);
	gpc_recording_close(rec);
}

TEST(a_slot_that_never_holds_still_in_a_live_file_is_torn)
{
	struct recording_file *file = *state;
	enum gpc_status status;
	struct gpc_recording *rec;
	int fd;

	file->b.blocks[0].seq = 5;
	builder_write(&file->b, file->path);
	fd = open(file->path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	rec = open_file(file, &status);
	assert_int_equal(rec->run_state, GPC_RUN_ALIVE);
	assert_int_equal(rec->regions[GPUCACHE_REGION_BLOCKS].n_torn, 1);
	walk(rec);
	gpc_recording_close(rec);
	close(fd);
}

TEST(anything_but_a_regular_file_is_refused)
{
	struct recording_file *file = *state;
	struct gpc_recording *rec = NULL;
	char why[200];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	assert_int_equal(gpc_recording_open("/tmp", &rec, &text), GPC_INVALID);
	assert_int_equal(gpc_recording_open("/dev/zero", &rec, &text), GPC_INVALID);
	assert_int_equal(gpc_recording_open("/nowhere/at/all", &rec, &text), GPC_IO);
	unlink(file->path);
	assert_int_equal(mkfifo(file->path, 0600), 0);
	assert_int_equal(gpc_recording_open(file->path, &rec, &text), GPC_INVALID);
	assert_null(rec);
}

TEST(a_file_beyond_the_bound_is_refused_without_reading_it)
{
	struct recording_file *file = *state;
	struct gpc_recording *rec = NULL;
	char why[200];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	builder_write(&file->b, file->path);
	/* Sparse: it costs nothing. */
	assert_int_equal(truncate(file->path, (off_t)GPC_RECORDING_MAX_BYTES + 1), 0);
	assert_int_equal(gpc_recording_open(file->path, &rec, &text), GPC_LIMIT);
}

TEST(control_characters_in_names_are_made_harmless)
{
#define TEXT(field) \
	offsetof(struct gpucache_header, field), sizeof(((struct gpucache_header *)NULL)->field)
	static const struct {
		size_t offset;
		size_t size;
	} texts[] = { { TEXT(boot_id) }, { TEXT(version) }, { TEXT(host) }, { TEXT(exe) },
		{ TEXT(command) }, { TEXT(job) } };
	struct recording_file *file = *state;
	enum gpc_status status;
	struct gpc_recording *rec;

	for (size_t i = 0; i < N_OF(texts); i++) {
		char *text = (char *)file->b.header + texts[i].offset;

		memset(text, 'x', texts[i].size);
		text[0] = '\033';
	}
	rec = open_file(file, &status);
	for (size_t i = 0; i < N_OF(texts); i++) {
		const char *text = (const char *)&rec->header + texts[i].offset;

		assert_int_equal(text[0], '?');
		assert_int_equal(strlen(text), texts[i].size - 1);
	}
	gpc_recording_close(rec);
}
