/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader that trusts nothing: checks the bytes of a recording against gpucache_format.h.
 *
 * The writers in these tests store values that depend on each other (fill_block, fill_event), so that a slot that mixes
 * two writes is detected even if its sequence number claims that it is whole.
 */
#ifndef GPC_TESTS_UNIT_RECORD_VERIFY_H
#define GPC_TESTS_UNIT_RECORD_VERIFY_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record.h"
#include "unit.h"

/* Usable in a child process too, where cmocka's assertions are not. */
#define EXPECT(x)                                                                             \
	do {                                                                                  \
		if (!(x)) {                                                                   \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x); \
			return false;                                                         \
		}                                                                             \
	} while (0)

/* An empty /dev/shm of this process's own: no other test, user or earlier run has anything in it.  Root only. */
static inline int own_shared_memory(void **state)
{
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	return 0;
}

struct image {
	unsigned char *bytes;
	size_t size;
	const struct gpucache_header *header;
	const struct gpucache_region *regions[GPUCACHE_REGION_COUNT];
	/* Found by verify_image. */
	unsigned n_torn;
	unsigned n_blocks;
	unsigned n_events;
	unsigned n_holes;
	unsigned n_stacks;
	unsigned n_points;
	unsigned n_peaks;
	unsigned n_ooms;
};

static inline struct gpucache_block fill_block(uint64_t n)
{
	return (struct gpucache_block){ .state = GPUCACHE_BLOCK_LIVE,
		.kind = GPUCACHE_KIND_DEVICE,
		.device = (uint16_t)(n % 3),
		.address = n * 512,
		.size = n * 3,
		.requested = n * 5,
		.time_ns = n * 7,
		.stack = (uint32_t)(n * 11),
		.thread = (uint32_t)(n * 13),
		.segment = (uint32_t)(n * 17),
		.context = (uint32_t)(n * 19),
		.tag = (uint32_t)(n * 23) };
}

static inline bool is_whole_block(const struct gpucache_block *block)
{
	struct gpucache_block same = fill_block(block->address / 512);

	same.seq = block->seq;
	return memcmp(&same, block, sizeof same) == 0;
}

static inline struct gpucache_event fill_event(uint64_t n)
{
	return (struct gpucache_event){ .time_ns = n,
		.address = n * 3,
		.size = n * 5,
		.requested = n * 7,
		.stack = (uint32_t)n,
		.thread = (uint32_t)(n * 9),
		.kind = GPUCACHE_EVENT_MALLOC,
		.device = (uint16_t)n,
		.context = (uint32_t)(n * 11),
		.detail = (uint32_t)(n * 13),
		.tag = (uint32_t)(n * 15) };
}

static inline bool is_whole_event(const struct gpucache_event *event)
{
	struct gpucache_event same = fill_event(event->time_ns);

	same.seq = event->seq;
	return memcmp(&same, event, sizeof same) == 0;
}

static inline bool load_image(struct image *image, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(image, 0, sizeof *image);
	EXPECT(fd >= 0);
	EXPECT(fstat(fd, &st) == 0);
	image->size = (size_t)st.st_size;
	image->bytes = malloc(image->size);
	EXPECT(read(fd, image->bytes, image->size) == (ssize_t)image->size);
	close(fd);
	image->header = (const void *)image->bytes;
	return true;
}

static inline void drop_image(struct image *image)
{
	free(image->bytes);
	image->bytes = NULL;
}

static inline const void *image_record(
	const struct image *image, enum gpucache_region_kind kind, size_t i)
{
	const struct gpucache_region *region = image->regions[kind];

	return image->bytes + region->offset + i * region->record_size;
}

static inline bool verify_table(struct image *image)
{
	const struct gpucache_header *header = image->header;
	uint64_t end = GPUCACHE_PAGE;

	EXPECT(memcmp(header->magic, GPUCACHE_FORMAT_MAGIC, 16) == 0);
	EXPECT(header->endian == GPUCACHE_ENDIAN);
	EXPECT(header->major == GPUCACHE_FORMAT_MAJOR);
	EXPECT(header->header_size == GPUCACHE_PAGE);
	EXPECT(header->file_size == image->size);
	EXPECT(header->n_regions == GPUCACHE_REGION_COUNT - 1);
	for (uint32_t i = 0; i < header->n_regions; i++) {
		const struct gpucache_region *region = &header->regions[i];

		EXPECT(region->kind > 0 && region->kind < GPUCACHE_REGION_COUNT);
		EXPECT(!image->regions[region->kind]);
		EXPECT(region->offset == end && region->offset % GPUCACHE_PAGE == 0);
		EXPECT(region->size > 0 && region->count > 0);
		EXPECT(region->count * region->record_size <= region->size);
		end = region->offset + region->size;
		image->regions[region->kind] = region;
	}
	EXPECT(end <= image->size);
	return true;
}

static inline bool verify_slots(struct image *image)
{
	const struct gpucache_region *region = image->regions[GPUCACHE_REGION_BLOCKS];

	for (size_t i = 0; i < region->count; i++) {
		const struct gpucache_block *block = image_record(image, GPUCACHE_REGION_BLOCKS, i);

		image->n_torn += block->seq & 1;
		if (block->seq & 1 || block->seq == 0)
			continue;
		EXPECT(is_whole_block(block));
		image->n_blocks++;
	}
	region = image->regions[GPUCACHE_REGION_EVENTS];
	EXPECT((region->count & (region->count - 1)) == 0);
	for (size_t i = 0; i < region->count; i++) {
		const struct gpucache_event *event = image_record(image, GPUCACHE_REGION_EVENTS, i);

		if (event->seq == 0) {
			image->n_holes += event->time_ns != 0;
			continue;
		}
		EXPECT((event->seq - 1) % region->count == i);
		EXPECT(is_whole_event(event));
		image->n_events++;
	}
	return true;
}

static inline bool verify_stacks(struct image *image)
{
	const struct gpucache_region *region = image->regions[GPUCACHE_REGION_STACKS];
	const unsigned char *at = image->bytes + region->offset;
	const struct gpucache_append_head *head = (const void *)at;
	uint64_t offset = 0;

	EXPECT(head->used <= region->count);
	for (at += sizeof *head; offset < head->used; image->n_stacks++) {
		const struct gpucache_stack *stack = (const void *)(at + offset);

		EXPECT(stack->size == sizeof *stack + 8u * stack->n_native);
		EXPECT(stack->id == image->n_stacks + 1);
		EXPECT(offset + stack->size <= head->used);
		offset += stack->size;
	}
	EXPECT(head->n_records == image->n_stacks || head->n_records + 1 == image->n_stacks);
	return true;
}

static inline bool verify_history(struct image *image)
{
	const struct gpucache_history_head *head = image_record(image, GPUCACHE_REGION_HISTORY, 0);
	const struct gpucache_point *points = (const void *)(head + 1);
	uint32_t n;

	if (head->device < 0)
		return true;
	EXPECT(head->live_buffer <= 1);
	EXPECT(head->max_points >= 64 && head->max_points <= 1024);
	n = head->n_points[head->live_buffer];
	EXPECT(n <= head->max_points);
	points += (size_t)head->live_buffer * head->max_points;
	for (uint32_t i = 1; i < n; i++)
		EXPECT(points[i].time_ns > points[i - 1].time_ns);
	image->n_points = n;
	return true;
}

static inline bool verify_peaks(struct image *image)
{
	unsigned n_odd = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct gpucache_peak *peak = image_record(image, GPUCACHE_REGION_PEAKS, i);

		n_odd += peak->seq & 1;
		if (peak->seq & 1 || peak->number == 0)
			continue;
		EXPECT(peak->n_holders <= GPUCACHE_MAX_HOLDERS);
		EXPECT(peak->live_bytes == peak->requested_bytes);
		for (uint32_t h = 1; h < peak->n_holders; h++)
			EXPECT(peak->holders[h].bytes <= peak->holders[h - 1].bytes);
		image->n_peaks++;
	}
	image->n_torn += n_odd;
	EXPECT(n_odd <= 1);
	return true;
}

static inline bool verify_ooms(struct image *image)
{
	for (size_t i = 0; i < image->regions[GPUCACHE_REGION_OOMS]->count; i++) {
		const struct gpucache_oom *oom = image_record(image, GPUCACHE_REGION_OOMS, i);

		image->n_torn += oom->seq & 1;
		if (oom->seq & 1 || oom->seq == 0)
			continue;
		EXPECT((oom->number - 1) % image->regions[GPUCACHE_REGION_OOMS]->count == i);
		EXPECT(oom->rounded == oom->requested * 2);
		image->n_ooms++;
	}
	return true;
}

/* Checks everything that the format promises of a file, at any moment, with one writer thread. */
static inline bool verify_image(struct image *image)
{
	return verify_table(image) && verify_slots(image) && verify_stacks(image) &&
	       verify_history(image) && verify_peaks(image) && verify_ooms(image);
}

#endif
