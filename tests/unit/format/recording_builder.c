/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/format/recording_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
	enum gpucache_region_kind kind;
	size_t record_size; /* 0: append-only */
	size_t count;
};

static const struct plan plans[] = {
	{ GPUCACHE_REGION_PAGES, 8, GPUCACHE_PAGE / 8 },
	{ GPUCACHE_REGION_DEVICES, sizeof(struct gpucache_device), BUILDER_DEVICES },
	{ GPUCACHE_REGION_COUNTERS, sizeof(struct gpucache_counters), BUILDER_COUNTERS },
	{ GPUCACHE_REGION_TORCH, sizeof(struct gpucache_torch), 2 },
	{ GPUCACHE_REGION_STREAMS, sizeof(struct gpucache_stream), 8 },
	{ GPUCACHE_REGION_SITES, sizeof(struct gpucache_site), BUILDER_SITES },
	{ GPUCACHE_REGION_STACKS, 0, 0 },
	{ GPUCACHE_REGION_CODES, 0, 0 },
	{ GPUCACHE_REGION_MODULES, 0, 0 },
	{ GPUCACHE_REGION_TEXT, 0, 0 },
	{ GPUCACHE_REGION_SEGMENTS, sizeof(struct gpucache_segment), BUILDER_SEGMENTS },
	{ GPUCACHE_REGION_BLOCKS, sizeof(struct gpucache_block), BUILDER_BLOCKS },
	{ GPUCACHE_REGION_EVENTS, sizeof(struct gpucache_event), BUILDER_EVENTS },
	{ GPUCACHE_REGION_HISTORY,
		sizeof(struct gpucache_history_head) +
			2 * BUILDER_POINTS *(sizeof(struct gpucache_point) + sizeof(uint64_t)),
		BUILDER_DEVICES },
	{ GPUCACHE_REGION_PEAKS, sizeof(struct gpucache_peak), BUILDER_PEAKS },
	{ GPUCACHE_REGION_OOMS, sizeof(struct gpucache_oom), BUILDER_OOMS },
	{ GPUCACHE_REGION_TAGS, 0, 0 },
};

#define N_PLANS (sizeof plans / sizeof plans[0])

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static size_t pages(size_t size)
{
	return (size + GPUCACHE_PAGE - 1) / GPUCACHE_PAGE * GPUCACHE_PAGE;
}

uint64_t builder_ns(double seconds)
{
	return BUILDER_START_MONOTONIC_NS + (uint64_t)(seconds * 1e9);
}

static void fill_header(struct gpucache_header *header, size_t size)
{
	memcpy(header->magic, GPUCACHE_FORMAT_MAGIC, sizeof header->magic);
	header->endian = GPUCACHE_ENDIAN;
	header->major = GPUCACHE_FORMAT_MAJOR;
	header->minor = GPUCACHE_FORMAT_MINOR;
	header->header_size = GPUCACHE_PAGE;
	header->n_regions = N_PLANS;
	header->file_size = size;
	header->state = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_CLEAN_EXIT;
	header->pid = 4711;
	header->start_monotonic_ns = BUILDER_START_MONOTONIC_NS;
	header->start_realtime_ns = BUILDER_START_REALTIME_NS;
	header->end_ns = builder_ns(723);
	header->rank = -1;
	header->local_rank = -1;
	header->driver_version = 12080;
	strcpy(header->version, "0.1.0");
	strcpy(header->host, "gpu07");
	strcpy(header->exe, "/usr/bin/train");
	strcpy(header->command, "train --batch 64 data/");
}

void builder_init(struct recording_builder *builder)
{
	size_t at = GPUCACHE_PAGE;
	size_t size = GPUCACHE_PAGE;

	memset(builder, 0, sizeof *builder);
	for (size_t i = 0; i < N_PLANS; i++)
		size += pages(plans[i].record_size ? plans[i].record_size * plans[i].count
						   : BUILDER_APPEND_BYTES);
	builder->data = calloc(1, size);
	if (!builder->data)
		die("builder");
	builder->size = size;
	builder->header = (void *)builder->data;
	fill_header(builder->header, size);
	for (size_t i = 0; i < N_PLANS; i++) {
		const struct plan *plan = &plans[i];
		struct gpucache_region *region = &builder->header->regions[i];

		region->kind = plan->kind;
		region->record_size = plan->record_size ? (uint32_t)plan->record_size : 1;
		region->offset = at;
		region->size = pages(
			plan->record_size ? plan->record_size * plan->count : BUILDER_APPEND_BYTES);
		region->count = plan->record_size
					? plan->count
					: region->size - sizeof(struct gpucache_append_head);
		at += region->size;
	}
	builder->devices = builder_region(builder, GPUCACHE_REGION_DEVICES);
	builder->counters = builder_region(builder, GPUCACHE_REGION_COUNTERS);
	builder->sites = builder_region(builder, GPUCACHE_REGION_SITES);
	builder->segments = builder_region(builder, GPUCACHE_REGION_SEGMENTS);
	builder->blocks = builder_region(builder, GPUCACHE_REGION_BLOCKS);
	builder->events = builder_region(builder, GPUCACHE_REGION_EVENTS);
	builder->peaks = builder_region(builder, GPUCACHE_REGION_PEAKS);
	builder->ooms = builder_region(builder, GPUCACHE_REGION_OOMS);
	builder->history = builder_region(builder, GPUCACHE_REGION_HISTORY);
}

void builder_fini(struct recording_builder *builder)
{
	free(builder->data);
}

/* What a test does not say of a failure was not measured; a growing site holds what the holders say. */
static void complete(struct gpucache_oom *oom)
{
	uint64_t *const unmeasured[] = { &oom->free_before, &oom->free_after, &oom->piece,
		&oom->other_piece, &oom->largest_pending, &oom->plain_live, &oom->page_waste,
		&oom->usual_live };

	if (oom->number == 0 || oom->setup != 0)
		return;
	oom->setup = GPUCACHE_OOM_CACHING;
	for (size_t i = 0; i < sizeof unmeasured / sizeof unmeasured[0]; i++)
		if (*unmeasured[i] == 0)
			*unmeasured[i] = GPUCACHE_UNKNOWN;
	if (oom->n_free == 0)
		oom->n_free = 1000000;
	for (uint32_t i = 0; i < oom->n_holders && i < GPUCACHE_MAX_OOM_HOLDERS; i++) {
		if (oom->holders[i].stack != oom->growth_stack || oom->growth_held)
			continue;
		oom->growth_held = oom->growth_total = oom->holders[i].bytes;
		oom->growth_blocks = oom->holders[i].n_blocks;
	}
	if (oom->growth_bytes && !oom->growth_held) {
		oom->growth_held = oom->growth_total = oom->growth_bytes;
		oom->growth_blocks = 1000;
	}
}

void builder_write(const struct recording_builder *builder, const char *path)
{
	unsigned char *pages = builder->data + GPUCACHE_PAGE; /* the first region */
	FILE *file = fopen(path, "wb");

	for (size_t i = 0; i < BUILDER_OOMS; i++)
		complete(&builder->ooms[i]);
	for (size_t i = 0; i < builder->size; i++)
		if (builder->data[i])
			pages[i / GPUCACHE_PAGE] = 1;

	if (!file || fwrite(builder->data, 1, builder->size, file) != builder->size ||
		fclose(file) != 0)
		die(path);
}

void builder_end(struct recording_builder *builder, const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	builder_write(builder, path);
	builder_fini(builder);
}

struct gpucache_region *builder_entry(
	const struct recording_builder *builder, enum gpucache_region_kind kind)
{
	for (size_t i = 0; i < N_PLANS; i++)
		if (builder->header->regions[i].kind == kind)
			return &builder->header->regions[i];
	return NULL;
}

void *builder_region(const struct recording_builder *builder, enum gpucache_region_kind kind)
{
	return builder->data + builder_entry(builder, kind)->offset;
}

void builder_append(struct recording_builder *builder, enum gpucache_region_kind kind,
	const void *data, size_t size)
{
	struct gpucache_append_head *head = builder_region(builder, kind);

	if (head->used + size > builder_entry(builder, kind)->size - sizeof *head)
		die("builder: append-only region is full");
	memcpy((char *)(head + 1) + head->used, data, size);
	head->used += size;
	head->n_records++;
}

uint32_t builder_stack(struct recording_builder *builder, const uint64_t *native, unsigned n_native,
	const uint64_t *python, unsigned n_python)
{
	unsigned char buf[4096];
	struct gpucache_stack stack = {
		.size = (uint32_t)(sizeof stack + 8 * (n_native + n_python)),
		.id = ++builder->n_stacks,
		.n_native = (uint16_t)n_native,
		.n_python = (uint16_t)n_python,
	};

	memcpy(buf, &stack, sizeof stack);
	if (n_native)
		memcpy(buf + sizeof stack, native, 8 * n_native);
	if (n_python)
		memcpy(buf + sizeof stack + 8 * n_native, python, 8 * n_python);
	builder_append(builder, GPUCACHE_REGION_STACKS, buf, stack.size);
	return stack.id;
}

uint32_t builder_code(struct recording_builder *builder, const char *name, const char *file,
	uint16_t version, uint32_t first_line, const void *lines, size_t lines_size)
{
	unsigned char buf[4096] = { 0 };
	struct gpucache_code code = {
		.id = ++builder->n_codes,
		.first_line = first_line,
		.python_version = version,
		.name_size = (uint16_t)strlen(name),
		.file_size = (uint32_t)strlen(file),
		.lines_size = (uint32_t)lines_size,
	};

	code.size = (uint32_t)((sizeof code + code.name_size + code.file_size + lines_size + 7) /
			       8 * 8);
	memcpy(buf, &code, sizeof code);
	memcpy(buf + sizeof code, name, code.name_size);
	memcpy(buf + sizeof code + code.name_size, file, code.file_size);
	memcpy(buf + sizeof code + code.name_size + code.file_size, lines, lines_size);
	builder_append(builder, GPUCACHE_REGION_CODES, buf, code.size);
	return code.id;
}

uint32_t builder_tag(struct recording_builder *builder, uint32_t parent, const char *name)
{
	unsigned char buf[1024] = { 0 };
	struct gpucache_tag tag = {
		.id = ++builder->n_tags,
		.parent = parent,
		.name_size = (uint32_t)strlen(name),
	};

	tag.size = (uint32_t)((sizeof tag + tag.name_size + 7) / 8 * 8);
	memcpy(buf, &tag, sizeof tag);
	memcpy(buf + sizeof tag, name, tag.name_size);
	builder_append(builder, GPUCACHE_REGION_TAGS, buf, tag.size);
	return tag.id;
}

void builder_module(struct recording_builder *builder, const char *path, uint64_t start,
	uint64_t end, uint64_t bias)
{
	unsigned char buf[1024] = { 0 };
	struct gpucache_module module = { .start = start, .end = end, .bias = bias };

	module.size = (uint32_t)((sizeof module + strlen(path) + 1 + 7) / 8 * 8);
	memcpy(buf, &module, sizeof module);
	memcpy(buf + sizeof module, path, strlen(path));
	builder_append(builder, GPUCACHE_REGION_MODULES, buf, module.size);
}

void builder_line(struct recording_builder *builder, const char *line)
{
	char buf[4096];
	int size = snprintf(buf, sizeof buf, "%s\n", line);

	if (size >= (int)sizeof buf)
		die("builder: a long line");
	builder_append(builder, GPUCACHE_REGION_TEXT, buf, (size_t)size);
}

/* Totals of a stack on device 0. */
static void add_to_site(struct recording_builder *builder, uint32_t stack, uint64_t requested)
{
	uint32_t i = 1;

	if (stack == 0)
		return;
	while (i + 1 < BUILDER_SITES && builder->sites[i].stack && builder->sites[i].stack != stack)
		i++;
	builder->sites[i].stack = stack;
	builder->sites[i].live_bytes += requested;
	builder->sites[i].live_blocks++;
	builder->sites[i].total_bytes += requested;
	builder->sites[i].total_blocks++;
}

struct gpucache_block *builder_live(struct recording_builder *builder, uint64_t requested,
	uint64_t size, uint32_t stack, double at_s)
{
	struct gpucache_block *block = &builder->blocks[builder->n_blocks++];

	*block = (struct gpucache_block){
		.seq = 2,
		.state = GPUCACHE_BLOCK_LIVE,
		.kind = GPUCACHE_KIND_DEVICE,
		.address = UINT64_C(0x7f0000000000) + ((uint64_t)builder->n_blocks << 32),
		.size = size,
		.requested = requested,
		.time_ns = builder_ns(at_s),
		.stack = stack,
		.thread = 4711,
	};
	builder->counters[0].requested_bytes += requested;
	builder->counters[0].live_bytes += size;
	builder->counters[0].reserved_bytes += size;
	builder->counters[0].n_blocks++;
	add_to_site(builder, stack, requested);
	return block;
}

void builder_event(struct recording_builder *builder, enum gpucache_event_kind kind, uint64_t size,
	double at_s)
{
	uint64_t number = builder->n_events++;

	builder->events[number % BUILDER_EVENTS] = (struct gpucache_event){
		.seq = number + 1,
		.time_ns = builder_ns(at_s),
		.size = size,
		.requested = size,
		.kind = (uint8_t)kind,
	};
}

int recording_file_begin(void **state)
{
	struct recording_file *file = calloc(1, sizeof *file);
	int fd;

	builder_init(&file->b);
	strcpy(file->path, "/tmp/gpucache-test-XXXXXX");
	fd = mkstemp(file->path);
	if (fd < 0) {
		perror(file->path);
		abort();
	}
	close(fd);
	*state = file;
	return 0;
}

int recording_file_end(void **state)
{
	struct recording_file *file = *state;

	unlink(file->path);
	builder_fini(&file->b);
	free(file);
	return 0;
}
