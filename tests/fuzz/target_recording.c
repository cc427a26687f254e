/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings, by every view of gpumem-report, whose own main is called once and again, and by
 * gpumem-replay.
 *
 * The mutations know the format: they reach for the region table, the heads of append-only regions, the
 * records and slots that are in use, and leave the zeros alone that most of a recording is.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "gpucache_format.h"
#include "tests/fuzz/fuzz.h"

/* tools/gpumem-report/main.c, compiled with another name for its main. */
int gpc_report_main(int argc, char **argv);

/* What is in use lies at the beginning of a region. */
#define USED_BYTES 8192

static const struct {
	const char *command;
	const char *option;
} views[] = {
	{ "summary", "--json" },
	{ "summary", "--color=always" },
	{ "oom", "--json" },
	{ "oom", "--limit=3" },
	{ "leaks", "--json" },
	{ "leaks", "--device=0" },
	{ "check", "--json" },
	{ "check", "--fail-on=oom,leak" },
	{ "export", "--format=folded" },
	{ "export", "--format=speedscope" },
	{ "export", "--format=pprof" },
	{ "export", "--format=perfetto" },
	{ "export", "--format=pytorch-snapshot" },
	{ "export", "--format=csv" },
	{ "export", "--format=openmetrics" },
	{ "export", "--format=json" },
	{ "html", "--force" },
};

#define N_VIEWS (sizeof views / sizeof views[0])

static void show(unsigned view, const char *path)
{
	char *argv[] = { (char *)(uintptr_t) "gpumem-report",
		(char *)(uintptr_t)views[view].command, (char *)(uintptr_t)views[view].option,
		(char *)(uintptr_t)path, NULL };
	int code;

	optind = 0; /* getopt begins anew */
	code = gpc_report_main(4, argv);
	/* Made, a condition of --fail-on, no such GPU, no such failure, damaged. */
	FUZZ_EXPECT(code >= 0 && code <= 4);
}

/* Two of the views for each input, chosen by the input itself, so that it can be run again. */
static void run_recording(const unsigned char *data, size_t size)
{
	const char *path = fuzz_file(data, size);
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	show(sum % N_VIEWS, path);
	show((sum / N_VIEWS) % N_VIEWS, path);
	fuzz_read_trace(path);
}

static bool is_append(uint32_t kind)
{
	return kind == GPUCACHE_REGION_STACKS || kind == GPUCACHE_REGION_CODES ||
	       kind == GPUCACHE_REGION_MODULES || kind == GPUCACHE_REGION_TEXT ||
	       kind == GPUCACHE_REGION_TAGS;
}

static unsigned count_regions(const struct fuzz_input *input)
{
	struct gpucache_header header;

	if (input->size < sizeof header)
		return 0;
	memcpy(&header, input->data, sizeof header);
	return header.n_regions < GPUCACHE_MAX_REGIONS ? header.n_regions : GPUCACHE_MAX_REGIONS;
}

static uint64_t place_of_entry(unsigned i)
{
	return offsetof(struct gpucache_header, regions) + i * sizeof(struct gpucache_region);
}

static struct gpucache_region read_entry(const struct fuzz_input *input, unsigned i)
{
	struct gpucache_region region;

	memcpy(&region, input->data + place_of_entry(i), sizeof region);
	return region;
}

/* The place of a record of an append-only region, found by the sizes of those before it. */
static uint64_t draw_record(struct fuzz_random *random, const struct fuzz_input *input,
	const struct gpucache_region *region)
{
	uint64_t at = region->offset + sizeof(struct gpucache_append_head);

	for (uint64_t n = fuzz_draw(random, 32); n > 0; n--) {
		uint32_t size;

		if (at > input->size || input->size - at < sizeof size)
			break;
		memcpy(&size, input->data + at, sizeof size);
		if (size < 8 || size > USED_BYTES)
			break;
		at += size;
	}
	return at;
}

/* One word of what a region holds. */
static void poke_region(
	struct fuzz_random *random, struct fuzz_input *input, const struct gpucache_region *region)
{
	unsigned width = 1u << fuzz_draw(random, 4);
	uint64_t at = region->offset;

	if (!is_append(region->kind))
		at += fuzz_draw(random, 2) ? fuzz_draw(random, USED_BYTES)
					   : fuzz_draw(random, 24) * region->record_size;
	else if (fuzz_draw(random, 8) == 0)
		width = 8; /* `used` */
	else
		at = draw_record(random, input, region) + fuzz_draw(random, 96);
	fuzz_poke(random, input, at / width * width, width);
}

static void mutate_region(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	unsigned i = (unsigned)fuzz_draw(random, count_regions(input));
	struct gpucache_region region = read_entry(input, i);
	uint64_t size = 1 + fuzz_draw(random, USED_BYTES);
	uint64_t from = fuzz_draw(random, other->size);

	switch (fuzz_draw(random, 8)) {
	case 0: /* its entry in the table: 0 .. 7 are kind and record_size, in halves */
		fuzz_poke(random, input, place_of_entry(i) + 4 * fuzz_draw(random, 2), 4);
		break;
	case 1:
		fuzz_poke(random, input, place_of_entry(i) + 8 + 8 * fuzz_draw(random, 3), 8);
		break;
	case 2: /* bytes of somewhere else */
		if (region.offset < input->size && size < input->size - region.offset &&
			size < other->size - from)
			memcpy(input->data + region.offset, other->data + from, size);
		break;
	default:
		for (uint64_t n = 1 + fuzz_draw(random, 4); n > 0; n--)
			poke_region(random, input, &region);
		break;
	}
}

static void mutate_recording(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	uint64_t kind = fuzz_draw(random, 12);

	if (kind == 0 || count_regions(input) == 0)
		fuzz_poke(random, input, fuzz_draw(random, GPUCACHE_PAGE), 1);
	else if (kind == 1)
		fuzz_poke(random, input, 16 + 4 * fuzz_draw(random, 50), 4);
	else if (kind == 2)
		input->size = fuzz_draw(random, input->size + 1);
	else
		mutate_region(random, input, other);
}

/* At each region's beginning and end, one byte before and one behind. */
static bool cut_recording(struct fuzz_input *input, unsigned k)
{
	unsigned n = count_regions(input);
	struct gpucache_region region;
	uint64_t at;

	if (k / 6 >= n)
		return false;
	region = read_entry(input, k / 6);
	at = region.offset + (k % 6 < 3 ? 0 : region.size) + k % 3 - 1;
	if (at < input->size)
		input->size = at;
	return true;
}

const struct fuzz_target fuzz_recording = { .name = "recording",
	.share = 70,
	.is_packed = true,
	.run = run_recording,
	.mutate = mutate_recording,
	.cut = cut_recording };
