/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each region begins where the one before ends.  The static_asserts at the end fix the format: within a major version
 * no offset changes.
 */
#include "record/layout.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "record/record.h"

/* Warnings, options and variables take some 4 KiB. */
#define TEXT_SIZE (64 * GPC_KIB)

#define MIN_POINTS 64u

/* A point, and its pending bytes, which are stored in a buffer of their own. */
#define POINT_SIZE (sizeof(struct gpucache_point) + sizeof(uint64_t))

/* HISTORY takes at most 1 / HISTORY_SHARE of the file. */
#define HISTORY_SHARE 8

#define N_PARTS 28

static void add_fixed(struct gpc_layout *layout, enum gpucache_region_kind kind,
	uint32_t record_size, uint64_t count)
{
	struct gpucache_region *region = &layout->regions[layout->n_regions++];

	region->kind = kind;
	region->record_size = record_size;
	region->offset = layout->file_size;
	region->count = count;
	region->size = gpc_round_up(count * record_size, GPUCACHE_PAGE);
	layout->file_size += region->size;
}

/* `size` is a multiple of GPUCACHE_PAGE, and includes the region's head. */
static void add_append(struct gpc_layout *layout, enum gpucache_region_kind kind, uint64_t size)
{
	add_fixed(layout, kind, 1, size - sizeof(struct gpucache_append_head));
}

static uint32_t choose_points(size_t size, uint32_t n_devices)
{
	uint32_t points = GPUCACHE_MAX_POINTS;

	while (points > MIN_POINTS &&
		(uint64_t)n_devices * 2 * points * POINT_SIZE > size / HISTORY_SHARE)
		points /= 2;
	return points;
}

static void add_small(struct gpc_layout *layout, size_t size, uint32_t n_devices)
{
	layout->max_points = choose_points(size, n_devices);
	/* PAGES is first: a reader that copies the file from its start must read a mark before the marked page. */
	add_fixed(layout, GPUCACHE_REGION_PAGES, 8, size / GPUCACHE_PAGE / 8 + 1);
	add_fixed(layout, GPUCACHE_REGION_DEVICES, sizeof(struct gpucache_device), n_devices);
	add_fixed(layout, GPUCACHE_REGION_COUNTERS, sizeof(struct gpucache_counters),
		GPUCACHE_MAX_CONTEXTS);
	add_fixed(layout, GPUCACHE_REGION_TORCH, sizeof(struct gpucache_torch), n_devices);
	add_fixed(layout, GPUCACHE_REGION_STREAMS, sizeof(struct gpucache_stream),
		GPUCACHE_MAX_STREAMS);
	add_append(layout, GPUCACHE_REGION_TEXT, TEXT_SIZE);
	add_fixed(layout, GPUCACHE_REGION_HISTORY,
		(uint32_t)(sizeof(struct gpucache_history_head) +
			   (size_t)2 * layout->max_points * POINT_SIZE),
		n_devices);
	add_fixed(layout, GPUCACHE_REGION_PEAKS, sizeof(struct gpucache_peak), 2 * n_devices);
	add_fixed(layout, GPUCACHE_REGION_OOMS, sizeof(struct gpucache_oom), GPUCACHE_MAX_OOMS);
}

void gpc_layout_make(struct gpc_layout *layout, size_t size, uint32_t n_devices)
{
	uint64_t part;
	uint64_t events = GPUCACHE_PAGE;

	memset(layout, 0, sizeof *layout);
	layout->file_size = GPUCACHE_PAGE; /* the header */
	add_small(layout, size, n_devices);
	part = (size - layout->file_size) / N_PARTS & ~(uint64_t)(GPUCACHE_PAGE - 1);
	while (events * 2 <= 8 * part)
		events *= 2;
	add_append(layout, GPUCACHE_REGION_STACKS, 6 * part);
	add_append(layout, GPUCACHE_REGION_CODES, 2 * part);
	add_append(layout, GPUCACHE_REGION_MODULES, part);
	add_append(layout, GPUCACHE_REGION_TAGS, gpc_round_up(part / 2, GPUCACHE_PAGE));
	add_fixed(layout, GPUCACHE_REGION_SITES, sizeof(struct gpucache_site),
		2 * part / sizeof(struct gpucache_site));
	add_fixed(layout, GPUCACHE_REGION_SEGMENTS, sizeof(struct gpucache_segment),
		part / sizeof(struct gpucache_segment));
	add_fixed(layout, GPUCACHE_REGION_EVENTS, sizeof(struct gpucache_event),
		events / sizeof(struct gpucache_event));
	/* BLOCKS also get what EVENTS lost by rounding down to a power of two. */
	add_fixed(layout, GPUCACHE_REGION_BLOCKS, sizeof(struct gpucache_block),
		(((size & ~(size_t)(GPUCACHE_PAGE - 1)) - layout->file_size) /
			sizeof(struct gpucache_block)));
}

/* A reader built by another compiler, years later, expects these sizes and offsets. */
static_assert(sizeof(struct gpucache_region) == 32, "region");
static_assert(offsetof(struct gpucache_header, state) == 40, "header.state");
static_assert(offsetof(struct gpucache_header, boot_id) == 216, "header.boot_id");
static_assert(offsetof(struct gpucache_header, regions) == 1120, "header.regions");
static_assert(sizeof(struct gpucache_header) <= GPUCACHE_PAGE, "header");
static_assert(sizeof(struct gpucache_device) == 216, "device");
static_assert(sizeof(struct gpucache_counters) == 576, "counters: nine cache lines");
static_assert(offsetof(struct gpucache_counters, one_stream_end) == 232,
	"a new counter takes the first word of `reserved`, behind all others");
static_assert(offsetof(struct gpucache_torch, failed_bytes) == 56, "so does one of PyTorch's");
/* A recording holds these numbers.  A new one comes last, before the count. */
static_assert(GPUCACHE_VERDICT_PINNED == 16, "the last verdict; a new one follows it");
static_assert(GPUCACHE_EVENT_CONTEXT == 8, "the last kind of event; a new one follows it");
static_assert(GPUCACHE_GROWS_STEPS == 3, "the last way to grow; a new one follows it");
static_assert(GPUCACHE_ONE_STREAM_END_UNSEEN == 8, "the last reason; a new one follows it");
static_assert(GPUCACHE_KIND_COUNT <= GPUCACHE_MAX_KINDS, "counters.kind_bytes");
static_assert(sizeof(struct gpucache_torch) == 128, "torch");
static_assert(sizeof(struct gpucache_stream) == 32, "stream");
static_assert(GPUCACHE_MAX_STREAMS <= GPUCACHE_STREAM_OTHER, "a number is in a record or is OTHER");
static_assert(sizeof(struct gpucache_site) == 64, "site");
static_assert(sizeof(struct gpucache_append_head) == 64, "append head");
static_assert(sizeof(struct gpucache_stack) == 24, "stack");
static_assert(sizeof(struct gpucache_code) == 24, "code");
static_assert(sizeof(struct gpucache_module) == 72, "module");
static_assert(sizeof(struct gpucache_segment) == 64, "segment");
static_assert(sizeof(struct gpucache_block) == 64, "block");
static_assert(offsetof(struct gpucache_block, address) == 8, "block.address");
static_assert(offsetof(struct gpucache_block, stack) == 40, "block.stack");
static_assert(offsetof(struct gpucache_block, segment) == 48, "block.segment");
static_assert(offsetof(struct gpucache_block, tag) == 56, "block.tag");
static_assert(sizeof(struct gpucache_event) == 64, "event");
static_assert(offsetof(struct gpucache_event, stack) == 40, "event.stack");
static_assert(offsetof(struct gpucache_event, kind) == 48, "event.kind");
static_assert(offsetof(struct gpucache_event, detail) == 56, "event.detail");
static_assert(offsetof(struct gpucache_event, tag) == 60, "event.tag");
static_assert(sizeof(struct gpucache_history_head) == 64, "history head");
static_assert(sizeof(struct gpucache_point) == 32, "point");
static_assert(sizeof(struct gpucache_holder) == 16, "holder");
static_assert(offsetof(struct gpucache_peak, holders) == 64, "peak.holders");
static_assert(sizeof(struct gpucache_balance) == 96, "balance");
static_assert(sizeof(struct gpucache_neighbour) == 48, "neighbour");
static_assert(sizeof(struct gpucache_tag) == 16 && sizeof(struct gpucache_tag_holder) == 16, "tag");
static_assert(offsetof(struct gpucache_oom, balance) == 80, "oom.balance");
static_assert(offsetof(struct gpucache_oom, torch) == 2096, "oom.torch");
