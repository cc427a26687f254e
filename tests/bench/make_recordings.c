/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the recordings that test_replay.sh replays, into the directory argv[1]. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/format/recording_builder.h"

#define MIB (UINT64_C(1) << 20)

/* Where blocks lie; their sizes are given with each event. */
enum place {
	P = 1,
	Q,
	R,
	S,
	T
};

static uint64_t address_of(enum place place)
{
	return UINT64_C(0x7f1000000000) + ((uint64_t)place << 30);
}

static struct gpucache_event *event(struct recording_builder *b, enum gpucache_event_kind kind,
	enum gpucache_kind alloc_kind, enum place place, uint64_t size)
{
	struct gpucache_event *event = &b->events[b->n_events % BUILDER_EVENTS];

	builder_event(b, kind, size, (double)b->n_events);
	event->alloc_kind = (uint8_t)alloc_kind;
	event->address = address_of(place);
	return event;
}

static struct gpucache_event *take(struct recording_builder *b, enum place place, uint64_t size)
{
	return event(b, GPUCACHE_EVENT_MALLOC, GPUCACHE_KIND_DEVICE, place, size);
}

static struct gpucache_event *give(struct recording_builder *b, enum place place, uint64_t size)
{
	return event(b, GPUCACHE_EVENT_FREE, GPUCACHE_KIND_DEVICE, place, size);
}

static struct gpucache_block *live(struct recording_builder *b, enum place place, uint64_t size)
{
	struct gpucache_block *block = builder_live(b, size, size, 0, 1);

	block->address = address_of(place);
	return block;
}

/*
 * 22 events, of which the ring keeps 16.  P and S were allocated before them, and S is still live; R was allocated
 * among them, and is live.  32 MiB are of another kind.
 */
static void make_ring(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	for (int i = 0; i < 4; i++)
		take(&b, Q, MIB), give(&b, Q, MIB);
	give(&b, P, 8 * MIB);
	event(&b, GPUCACHE_EVENT_MALLOC, GPUCACHE_KIND_ASYNC, T, 32 * MIB);
	event(&b, GPUCACHE_EVENT_SEGMENT_MALLOC, GPUCACHE_KIND_DEVICE, R, 20 * MIB);
	take(&b, R, 6 * MIB);
	event(&b, GPUCACHE_EVENT_OOM, GPUCACHE_KIND_DEVICE, Q, 4096 * 1024 * MIB);
	for (int i = 0; i < 4; i++)
		take(&b, Q, MIB), give(&b, Q, MIB);
	event(&b, GPUCACHE_EVENT_SYNC, GPUCACHE_KIND_NONE, Q, 0);
	live(&b, S, 10 * MIB);
	live(&b, R, 6 * MIB);
	live(&b, T, 32 * MIB)->kind = GPUCACHE_KIND_ASYNC;
	builder_end(&b, dir, "ring.gpucache");
}

/* Two holes in the ring, in place of a free and an allocation, and a torn slot. */
static void make_holes(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	take(&b, Q, 3 * MIB);
	give(&b, Q, 3 * MIB)->seq = 0;
	take(&b, Q, 4 * MIB);
	give(&b, Q, 4 * MIB);
	take(&b, Q, 5 * MIB)->seq = 0;
	give(&b, Q, 5 * MIB);
	live(&b, S, 10 * MIB);
	live(&b, R, 6 * MIB)->seq = 7;
	b.header->state = GPUCACHE_STATE_OPENED;
	b.header->end_ns = 0;
	builder_end(&b, dir, "holes.gpucache");
}

static void make_devices(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	take(&b, P, 2 * MIB);
	take(&b, Q, 3 * MIB)->device = 1;
	give(&b, Q, 3 * MIB)->device = 1;
	take(&b, Q, 5 * MIB)->device = 1;
	live(&b, P, 2 * MIB);
	live(&b, Q, 5 * MIB)->device = 1;
	builder_end(&b, dir, "devices.gpucache");
}

/* Two contexts; one is reset with a live block. */
static void make_reset(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	take(&b, P, 8 * MIB);
	take(&b, Q, 4 * MIB)->context = 1;
	event(&b, GPUCACHE_EVENT_CONTEXT, GPUCACHE_KIND_NONE, T, 0)->detail = 2;
	take(&b, R, 6 * MIB);
	live(&b, Q, 4 * MIB)->context = 1;
	live(&b, R, 6 * MIB);
	builder_end(&b, dir, "reset.gpucache");
}

/* Impossible sizes and addresses, and a ring outside the file. */
static void make_damaged(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	take(&b, P, 8 * MIB);
	take(&b, Q, UINT64_MAX);
	take(&b, Q, MIB)->address = UINT64_MAX;
	live(&b, P, 8 * MIB);
	live(&b, S, UINT64_C(1) << 62);
	builder_entry(&b, GPUCACHE_REGION_SITES)->count = UINT64_C(1) << 60;
	builder_end(&b, dir, "damaged.gpucache");
	builder_init(&b);
	live(&b, P, 8 * MIB);
	builder_entry(&b, GPUCACHE_REGION_EVENTS)->offset = UINT64_C(1) << 60;
	builder_end(&b, dir, "no_events.gpucache");
	builder_init(&b);
	b.header->major = 2;
	builder_end(&b, dir, "version.gpucache");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	make_ring(argv[1]);
	make_holes(argv[1]);
	make_devices(argv[1]);
	make_reset(argv[1]);
	make_damaged(argv[1]);
	return 0;
}
