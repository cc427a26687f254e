/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings, which every view of gpumem-report and gpumem-replay read.  The target calls the main of gpumem-report.
 *
 * The mutations know the format.  They change the region table, the heads of append-only regions, and records and slots
 * in use.  Most of a recording is zeros that nothing reads, so those stay.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpucache_format.h"
#include "tests/fuzz/fuzz.h"

/* The main of gpumem-report, renamed by rules.mk. */
int gpc_report_main(int argc, char **argv);

/* Mutations stay within this many bytes or records from the beginning of a region, where the used ones are. */
#define USED_BYTES   8192
#define MOST_RECORDS 256

/* In a command, @ stands for the input, + for a slightly different recording, / for the folder of both. */
static const char *const views[] = {
	"summary --json @",
	"summary --color=always @",
	"summary --at=peak --where=train @",
	"oom --json @",
	"oom --limit=3 @",
	"leaks --json @",
	"leaks --device=0 @",
	"leaks --tag=step --thread=1 --stream=2 @",
	"check --json @",
	"check --fail-on=oom,leak /",
	"tree @",
	"tree --bottom-up --at=oom @",
	"tree --json @",
	"top @",
	"top --json --library=PyTorch @",
	"timeline @",
	"timeline --json @",
	"diff @ +",
	"diff --json + @",
	"list /",
	"list --json /",
	"list @ +",
	"list --json /",
	"fit --on=l4 @",
	"fit --json @",
	"sweep --json /",
	"cure --json @",
	"live --once @",
	"live --json @",
	"pack --force --output=/dev/null @",
	"export --format=folded @",
	"export --format=pprof @",
	"export --format=perfetto @",
	"export --format=pytorch-snapshot @",
	"export --format=csv @",
	"export --format=prometheus @",
	"export --format=openmetrics @ +",
	"export --format=json @",
	"html @",
	"html @ +",
};

#define N_VIEWS  (sizeof views / sizeof views[0])
#define MAX_ARGS 8

static void mutate_recording(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other);

static void show(const char *view, const char *path, const char *other)
{
	char words[256];
	char *argv[MAX_ARGS] = { (char *)(uintptr_t) "gpumem-report" };
	char *rest = words;
	int argc = 1;
	int code;

	snprintf(words, sizeof words, "%s", view);
	for (char *word; (word = strsep(&rest, " ")) && argc + 1 < MAX_ARGS;)
		argv[argc++] = (char *)(uintptr_t)(strcmp(word, "@") == 0   ? path
						   : strcmp(word, "+") == 0 ? other
						   : strcmp(word, "/") == 0 ? fuzz_folder()
									    : word);
	argv[argc] = NULL;
	optind = 0; /* makes getopt start again */
	code = gpc_report_main(argc, argv);
	/* The exit codes of gpumem-report, without 5: an error of input or output. */
	FUZZ_EXPECT(code >= 0 && code <= 4);
}

/* Writes a second recording, the input with few changes, as if it were of the same run.  Returns its path. */
static const char *write_other(const unsigned char *data, size_t size, uint64_t seed)
{
	static unsigned char room[FUZZ_MAX_INPUT];
	static char path[128];
	struct fuzz_input other = { room, size };
	const struct fuzz_input input = { (unsigned char *)(uintptr_t)data, size };
	struct fuzz_random random = { seed };

	memcpy(room, data, size);
	for (uint64_t n = fuzz_draw(&random, 3); n > 0 && size; n--)
		mutate_recording(&random, &other, &input);
	snprintf(path, sizeof path, "%s", fuzz_file("b.gpucache", other.data, other.size));
	return path;
}

/* Runs two views.  The bytes of the input choose them, so that a failing input fails again. */
static void run_recording(const unsigned char *data, size_t size)
{
	char path[128];
	const char *other;
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	snprintf(path, sizeof path, "%s", fuzz_file("a.gpucache", data, size));
	other = write_other(data, size, sum);
	show(views[sum % N_VIEWS], path, other);
	show(views[(sum / N_VIEWS) % N_VIEWS], path, other);
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

/* Draws one of the first records of an append-only region, by following their sizes.  Returns its offset. */
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

/* Changes one word of a region. */
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

/* The number of whole records of the region inside the file, at most MOST_RECORDS. */
static uint64_t count_records(const struct fuzz_input *input, const struct gpucache_region *region)
{
	uint64_t room = region->offset < input->size ? input->size - region->offset : 0;
	uint64_t n = region->record_size ? room / region->record_size : 0;

	n = n < region->count ? n : region->count;
	return n < MOST_RECORDS ? n : MOST_RECORDS;
}

/* Sets one field of all records, to the same number or to different ones: changes of one record overflow no sum. */
static void sweep_field(
	struct fuzz_random *random, struct fuzz_input *input, const struct gpucache_region *region)
{
	uint64_t n = count_records(input, region);
	unsigned width = 1u << fuzz_draw(random, 4);
	uint64_t field = n ? fuzz_draw(random, region->record_size) / width * width : 0;
	uint64_t value = fuzz_number(random, UINT64_C(1) << 62);
	bool is_same = fuzz_draw(random, 2);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = region->offset + i * region->record_size + field;

		if (!is_same)
			value = fuzz_number(random, value);
		if (at < input->size && width <= input->size - at)
			memcpy(input->data + at, &value, width);
	}
}

/* Copies one record over another. */
static void copy_record(
	struct fuzz_random *random, struct fuzz_input *input, const struct gpucache_region *region)
{
	uint64_t n = count_records(input, region);

	if (n > 1)
		memmove(input->data + region->offset + fuzz_draw(random, n) * region->record_size,
			input->data + region->offset + fuzz_draw(random, n) * region->record_size,
			region->record_size);
}

/* Copies the last records of an append-only region behind its end, and counts the copies in its head. */
static void repeat_records(
	struct fuzz_random *random, struct fuzz_input *input, const struct gpucache_region *region)
{
	struct gpucache_append_head head;
	uint64_t from = draw_record(random, input, region);
	uint64_t to;

	if (region->offset > input->size || input->size - region->offset < sizeof head)
		return;
	memcpy(&head, input->data + region->offset, sizeof head);
	to = region->offset + sizeof head + head.used;
	if (head.used > region->size || from >= to || to > input->size)
		return;
	for (uint64_t n = 1 + fuzz_draw(random, 64); n > 0; n--) {
		uint64_t size = to - from;

		if (size > input->size - to || to + size > region->offset + region->size)
			break;
		memcpy(input->data + to, input->data + from, size);
		head.used += size;
		to += size;
	}
	memcpy(input->data + region->offset, &head, sizeof head);
}

static void mutate_region(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	unsigned i = (unsigned)fuzz_draw(random, count_regions(input));
	struct gpucache_region region = read_entry(input, i);
	uint64_t size = 1 + fuzz_draw(random, USED_BYTES);
	uint64_t from = fuzz_draw(random, other->size);

	switch (fuzz_draw(random, 12)) {
	case 0: /* in the region table: kind or record_size, 4 bytes each */
		fuzz_poke(random, input, place_of_entry(i) + 4 * fuzz_draw(random, 2), 4);
		break;
	case 1:
		fuzz_poke(random, input, place_of_entry(i) + 8 + 8 * fuzz_draw(random, 3), 8);
		break;
	case 2: /* the region begins with bytes of another recording */
		if (region.offset < input->size && size < input->size - region.offset &&
			size < other->size - from)
			memcpy(input->data + region.offset, other->data + from, size);
		break;
	case 3:
	case 4:
		if (!is_append(region.kind))
			sweep_field(random, input, &region);
		break;
	case 5:
		if (is_append(region.kind))
			repeat_records(random, input, &region);
		else
			copy_record(random, input, &region);
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

/* Truncates at the beginning and at the end of each region, and one byte before and after both. */
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
	.share = 55,
	.is_packed = true,
	.run = run_recording,
	.mutate = mutate_recording,
	.cut = cut_recording };
