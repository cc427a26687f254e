/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording argv[1], with all that is hard to export: two GPUs, PyTorch's arenas with tensors and gaps,
 * pending and free blocks, a context, separators and quotes in names, events of freed blocks and segments, ranges, a
 * failed request, a history.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/format/recording_builder.h"

#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define HEAP UINT64_C(0x7f8000000000)

static void add_devices(struct recording_builder *b)
{
	for (int i = 0; i < 2; i++) {
		b->devices[i] = (struct gpucache_device){ .seq = 2,
			.ordinal = i,
			.total_bytes = 80 * GIB,
			.look_ns = builder_ns(1),
			.free_bytes = 70 * GIB,
			.ours_bytes = GIB };
		snprintf(b->devices[i].name, sizeof b->devices[i].name, "NVIDIA \"H100\" \\ %d", i);
		snprintf(b->devices[i].uuid, sizeof b->devices[i].uuid,
			"GPU-%d1111111-2222-3333-4444-555555555555", i);
	}
	b->counters[1] = (struct gpucache_counters){ .context = 0xbeef, .device = 1 };
}

static struct gpucache_block *add_block(struct recording_builder *b, uint8_t state, uint8_t kind,
	uint64_t address, uint64_t size, uint64_t requested, uint32_t stack)
{
	struct gpucache_block *block = builder_live(b, requested, size, stack, b->n_blocks);

	block->state = state;
	block->kind = kind;
	block->address = address;
	block->segment = GPUCACHE_NO_SEGMENT;
	return block;
}

/* One segment: an arena with two tensors, a live, a pending and a free block. */
static void add_heap(struct recording_builder *b, uint32_t stack, uint32_t tag)
{
	const uint8_t live = GPUCACHE_BLOCK_LIVE;
	const uint8_t device = GPUCACHE_KIND_DEVICE;
	struct gpucache_block *block;

	block = add_block(b, live, device, HEAP, 20 * MIB, 20 * MIB, stack);
	block->flags = GPUCACHE_BLOCK_ARENA;
	block->segment = 0;
	add_block(b, live, GPUCACHE_KIND_TENSOR, HEAP, 4 * MIB, 4 * MIB - 100, stack)->tag = tag;
	add_block(b, live, GPUCACHE_KIND_TENSOR, HEAP + 6 * MIB, MIB, MIB, stack)->tag = tag;
	add_block(b, live, device, HEAP + 20 * MIB, 2 * MIB, 2 * MIB - 7, stack)->segment = 0;
	add_block(b, GPUCACHE_BLOCK_PENDING, device, HEAP + 22 * MIB, 4 * MIB, 3 * MIB, stack)
		->segment = 0;
	add_block(b, GPUCACHE_BLOCK_FREE, device, HEAP + 26 * MIB, 6 * MIB, 0, 0)->segment = 0;
	add_block(b, live, GPUCACHE_KIND_ASYNC, HEAP + GIB, 8 * MIB, 8 * MIB, 0);
	add_block(b, live, GPUCACHE_KIND_CONTEXT, 0x55550000, 400 * MIB, 400 * MIB, stack);
	add_block(b, live, GPUCACHE_KIND_HOST, 0x7fff0000, 9 * MIB, 9 * MIB, stack);
	add_block(b, live, GPUCACHE_KIND_PITCHED, HEAP + 2 * GIB, 3 * MIB, 3 * MIB, stack)->device =
		1;
}

static struct gpucache_event *add_event(struct recording_builder *b, enum gpucache_event_kind kind,
	uint64_t address, uint64_t size, double at_s)
{
	struct gpucache_event *event = &b->events[b->n_events];

	builder_event(b, kind, size, at_s);
	event->address = address;
	event->alloc_kind = GPUCACHE_KIND_DEVICE;
	event->thread = 4711;
	event->stack = 1;
	return event;
}

static void add_events(struct recording_builder *b, uint32_t tag)
{
	add_event(b, GPUCACHE_EVENT_SEGMENT_MALLOC, HEAP, 32 * MIB, 1);
	add_event(b, GPUCACHE_EVENT_MALLOC, HEAP, 20 * MIB, 1.1);
	add_event(b, GPUCACHE_EVENT_MALLOC, HEAP + 4 * MIB, 2 * MIB, 1.2)->alloc_kind =
		GPUCACHE_KIND_TENSOR;
	add_event(b, GPUCACHE_EVENT_MALLOC, HEAP + 6 * MIB, MIB, 1.3)->tag = tag;
	b->events[3].alloc_kind = GPUCACHE_KIND_TENSOR;
	add_event(b, GPUCACHE_EVENT_FREE, HEAP + 4 * MIB, 2 * MIB, 1.4)->tag = tag;
	b->events[4].alloc_kind = GPUCACHE_KIND_TENSOR;
	/* A block whose segment was freed. */
	add_event(b, GPUCACHE_EVENT_MALLOC, HEAP + 8 * GIB, 64 * MIB, 1.5);
	add_event(b, GPUCACHE_EVENT_FREE, HEAP + 8 * GIB, 64 * MIB, 1.6);
	add_event(b, GPUCACHE_EVENT_FREE, HEAP + 9 * GIB, 64 * MIB, 1.7);
	add_event(b, GPUCACHE_EVENT_MALLOC, HEAP + 22 * MIB, 4 * MIB, 1.8);
	add_event(b, GPUCACHE_EVENT_FREE, HEAP + 22 * MIB, 4 * MIB, 1.9);
	add_event(b, GPUCACHE_EVENT_OOM, 70 * MIB, 90 * GIB, 2);
}

static void add_history(struct recording_builder *b)
{
	struct gpucache_point *points = (struct gpucache_point *)(b->history + 1);
	uint64_t *pending = (uint64_t *)(points + 2 * BUILDER_POINTS);

	*b->history = (struct gpucache_history_head){
		.max_points = BUILDER_POINTS, .interval_ns = 1000000000, .n_points = { 4, 0 }
	};
	for (unsigned i = 0; i < 4; i++) {
		pending[i] = i * MIB;
		points[i] = (struct gpucache_point){ .time_ns = builder_ns(i),
			.requested_bytes = i * 10 * MIB,
			.live_bytes = i * 11 * MIB,
			.reserved_bytes = i * 320 * MIB };
	}
}

static void add_failure(struct recording_builder *b, uint32_t stack)
{
	b->ooms[0] = (struct gpucache_oom){ .seq = 2,
		.number = 1,
		.recovered = 1,
		.time_ns = builder_ns(2),
		.requested = 90 * GIB,
		.stack = stack,
		.thread = 4711,
		.n_holders = 1,
		.rest_bytes = 5 * MIB };
	b->ooms[0].holders[0] = (struct gpucache_holder){ stack, 3, 6 * MIB };
	b->ooms[1] = (struct gpucache_oom){ .seq = 2,
		.device = 1,
		.number = 2,
		.recovered = 1,
		.time_ns = builder_ns(3),
		.requested = 90 * GIB,
		.thread = 4711,
		.rest_bytes = 13 * MIB };
	b->peaks[0] = (struct gpucache_peak){ .seq = 2,
		.number = 1,
		.time_ns = builder_ns(2),
		.n_holders = 1,
		.rest_bytes = 11 * MIB };
	b->peaks[0].holders[0] = (struct gpucache_holder){ stack, 2, 77 * MIB };
	b->counters[0].n_oom = 1;
}

int main(int argc, char **argv)
{
	const unsigned char lines[] = { 0x80 | 10 << 3 | 1, 0, 0 };
	const uint64_t native[] = { 0x7f00001010, 0x401100 };
	struct recording_builder b;
	uint64_t python;
	uint32_t stack;
	uint32_t tag;

	if (argc != 2)
		return 2;
	builder_init(&b);
	add_devices(&b);
	builder_module(&b, "/opt/a;b \"c\"/train", 0x400000, 0x500000, 0);
	builder_module(&b, "/usr/lib/libtwo.so", 0x7f00000000, 0x7f00100000, 0x7f00000000);
	python = GPUCACHE_FRAME_PYTHON | GPUCACHE_FRAME_FROM_C |
		 (uint64_t)builder_code(
			 &b, "<lambda; \"x\">", "/src/mo;del.py", 0x030b, 7, lines, sizeof lines)
			 << 32;
	stack = builder_stack(&b, native, 2, &python, 1);
	tag = builder_tag(&b, builder_tag(&b, 0, "train"), "for\"ward");
	add_heap(&b, stack, tag);
	add_events(&b, tag);
	add_history(&b);
	add_failure(&b, stack);
	snprintf(b.header->command, sizeof b.header->command, "train --name \"a;b\" \\x");
	b.header->rank = 3;
	builder_write(&b, argv[1]);
	builder_fini(&b);
	return 0;
}
