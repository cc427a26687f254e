/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces from recordings: the ring of events, and the blocks live before its oldest one.
 *
 * A view decides which events are requests: driver allocations, or tensors (tensors.h) and the allocations that bypass
 * PyTorch's cache.  All other memory of the device counts as held throughout, at its maximum.
 */
#include <stdlib.h>

#include "alloc/size_class.h"
#include "format/recording.h"
#include "tools/replay/tensors.h"
#include "tools/replay/trace_build.h"

/* A block that was live before the first event, as far as the walk knows. */
struct seed {
	uint64_t address;
	uint64_t size;
	uint32_t context;
	uint8_t kind;
	bool is_born_later; /* the walk found its allocation: no seed */
};

struct source {
	const struct gpc_recording *recording;
	struct gpc_trace_builder *builder;
	int device;
	bool is_of_tensors;
	struct gpc_tensors tensors; /* if the view is of tensors */
	bool has_refused;           /* the driver refused a request */
	struct gpucache_event *events;
	uint64_t n_events;
	struct seed *seeds;
	uint64_t n_seeds;
	struct gpc_address_map held; /* address -> its seed, during the walk */
	uint32_t *contexts;          /* by slot */
};

/* True for device memory that no allocator was asked for; managed memory may be elsewhere. */
static bool is_beside(const struct source *source, unsigned kind)
{
	if (kind == GPUCACHE_KIND_PHYSICAL && source->is_of_tensors)
		return !source->tensors.has_physical;
	return kind != GPUCACHE_KIND_DEVICE && kind != GPUCACHE_KIND_MANAGED &&
	       gpucache_kind_place(kind) == GPUCACHE_ON_DEVICE;
}

/* True if the memory is a request in this view. */
static bool is_request(const struct source *source, unsigned kind, bool is_arena)
{
	if (kind == GPUCACHE_KIND_DEVICE)
		return !source->is_of_tensors || !is_arena;
	return source->is_of_tensors && (kind == GPUCACHE_KIND_TENSOR || is_beside(source, kind));
}

static enum gpc_trace_way way_of(const struct source *source, unsigned kind)
{
	if (kind == GPUCACHE_KIND_TENSOR)
		return GPC_TRACE_CACHED;
	if (kind != GPUCACHE_KIND_DEVICE)
		return GPC_TRACE_BESIDE;
	return source->tensors.has_torch ? GPC_TRACE_DIRECT : GPC_TRACE_CACHED;
}

/* Device memory is identified by its address; other memory has keys of its own. */
static uint64_t identity_of(unsigned kind, uint64_t address)
{
	const bool is_address = kind == GPUCACHE_KIND_DEVICE || kind == GPUCACHE_KIND_TENSOR;

	return is_address ? address : address ^ (uint64_t)kind << 58;
}

static bool is_request_event(const struct source *source, uint64_t i)
{
	return is_request(source, source->events[i].alloc_kind,
		source->is_of_tensors && source->tensors.is_arena[i]);
}

/* Without the view of tensors it counts as held throughout. */
static bool is_other(const struct source *source, unsigned kind)
{
	return !source->is_of_tensors && is_beside(source, kind);
}

static bool is_memory(const struct gpucache_event *event)
{
	return event->kind == GPUCACHE_EVENT_MALLOC || event->kind == GPUCACHE_EVENT_FREE;
}

/* A damaged file may contain anything; impossible ranges are skipped. */
static bool can_be(uint64_t address, uint64_t size)
{
	return address != 0 && address != UINT64_MAX && size <= GPC_SIZE_MAX;
}

static uint64_t asked_for(uint64_t requested, uint64_t size)
{
	return requested ? requested : size;
}

static bool read_events(struct source *source)
{
	const struct gpc_recording *recording = source->recording;
	struct gpc_trace_recorded *recorded = &source->builder->trace.recorded;
	uint64_t count = recording->regions[GPUCACHE_REGION_EVENTS].count;
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	source->events = calloc(count + 1, sizeof *source->events);
	if (!source->events)
		return false;
	while (source->n_events < count && gpc_recording_next_event(recording, &cursor, &event))
		source->events[source->n_events++] = event;
	recorded->n_events = cursor.next;
	recorded->n_missing = cursor.n_holes;
	if (source->n_events) {
		recorded->first_event = source->events[0].seq;
		recorded->last_event = source->events[source->n_events - 1].seq;
	}
	return true;
}

/* The device with the most events and live blocks. */
static int busiest_device(const struct source *source)
{
	const struct gpc_recording *recording = source->recording;
	uint64_t counts[UINT8_MAX + 1] = { 0 };
	struct gpucache_block block;
	int best = 0;

	for (uint64_t i = 0; i < source->n_events; i++)
		if (is_memory(&source->events[i]) && source->events[i].device <= UINT8_MAX)
			counts[source->events[i].device]++;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(recording, i, &block) &&
			gpc_recording_holds_device_memory(&block) && block.device <= UINT8_MAX)
			counts[block.device]++;
	for (int device = 1; device <= UINT8_MAX; device++)
		if (counts[device] > counts[best])
			best = device;
	return best;
}

/* Keeps only possible events of the chosen device. */
static void keep_device(struct source *source)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < source->n_events; i++) {
		const struct gpucache_event *event = &source->events[i];

		if (event->device != source->device)
			source->builder->trace.recorded.n_other_devices++;
		else if (!is_memory(event) || (can_be(event->address, event->size) &&
						      can_be(event->address, event->requested)))
			source->events[n++] = *event;
	}
	source->n_events = n;
}

static enum gpc_status hold(
	struct source *source, uint8_t kind, uint64_t address, uint64_t size, uint32_t context)
{
	struct seed *seed = gpc_address_map_find(&source->held, address);

	/* An older block at the same address: its free was found, the younger one's malloc was not. */
	if (!seed) {
		if (gpc_address_map_reserve(&source->held, 1))
			return GPC_NO_METADATA;
		seed = &source->seeds[source->n_seeds++];
		gpc_address_map_insert(&source->held, address, seed);
	}
	*seed = (struct seed){ .address = address, .size = size, .context = context, .kind = kind };
	return GPC_OK;
}

/* Collects the blocks live at the end.  *ret_others: the bytes of other kinds. */
static enum gpc_status hold_live(struct source *source, uint64_t *ret_others)
{
	const struct gpc_recording *recording = source->recording;
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_BLOCKS];
	enum gpc_status st = GPC_OK;
	struct gpucache_block block;
	uint64_t others = 0;

	source->seeds = calloc(region->count + source->n_events + 1, sizeof *source->seeds);
	if (!source->seeds)
		return GPC_NO_METADATA;
	for (uint64_t i = 0; i < region->count && !st; i++) {
		if (!gpc_recording_read_block(recording, i, &block) ||
			block.state != GPUCACHE_BLOCK_LIVE || block.device != source->device ||
			!can_be(block.address, block.size) ||
			!can_be(block.address, block.requested))
			continue;
		if (is_request(source, block.kind, block.flags & GPUCACHE_BLOCK_ARENA))
			st = hold(source, block.kind, identity_of(block.kind, block.address),
				asked_for(block.requested, block.size), block.context);
		else if (is_other(source, block.kind))
			others = gpc_bytes_add(others, block.size);
	}
	source->builder->trace.recorded.n_torn = region->n_torn;
	*ret_others = others;
	return st;
}

/* Walks from the end to the beginning of the ring. */
static enum gpc_status find_seeds(struct source *source)
{
	enum gpc_status st;
	uint64_t others = 0;
	uint64_t most = 0;

	st = hold_live(source, &others);
	for (uint64_t i = source->n_events; i-- > 0 && !st;) {
		const struct gpucache_event *event = &source->events[i];
		bool is_malloc = event->kind == GPUCACHE_EVENT_MALLOC;

		most = others > most ? others : most;
		if (!is_memory(event))
			continue;
		if (is_request_event(source, i) && is_malloc) {
			struct seed *seed = gpc_address_map_take(
				&source->held, identity_of(event->alloc_kind, event->address));

			if (seed)
				seed->is_born_later = true;
		} else if (is_request_event(source, i)) {
			st = hold(source, event->alloc_kind,
				identity_of(event->alloc_kind, event->address),
				asked_for(event->requested, event->size), event->context);
		} else if (is_other(source, event->alloc_kind)) {
			/* Saturate: events lost in a hole must not turn the sum negative. */
			if (!is_malloc)
				others = gpc_bytes_add(others, event->size);
			else
				others = gpc_bytes_less(others, event->size);
		}
	}
	source->builder->trace.fixed_bytes = others > most ? others : most;
	return st;
}

static enum gpc_status add(struct source *source, enum gpc_trace_op_kind kind, uint64_t address,
	uint64_t size, uint64_t time_ns, uint64_t line)
{
	const struct gpc_trace_row row = {
		.kind = kind, .identity = address, .size = size, .time_ns = time_ns, .line = line
	};

	if (kind != GPC_TRACE_FREE && size == 0)
		return GPC_OK;
	return gpc_trace_add(source->builder, &row);
}

static enum gpc_status add_alloc(struct source *source, uint8_t kind, uint64_t address,
	uint64_t size, uint64_t time_ns, uint32_t context, uint64_t line)
{
	const struct gpc_trace_row row = {
		.kind = GPC_TRACE_ALLOC,
		.identity = address,
		.size = size,
		.stream = kind == GPUCACHE_KIND_TENSOR
				  ? gpc_tensors_stream(&source->tensors, address)
				  : 0,
		.time_ns = time_ns,
		.line = line,
		.way = way_of(source, kind),
	};
	enum gpc_status st = size ? gpc_trace_add(source->builder, &row) : GPC_OK;

	if (!st && size)
		source->contexts[source->builder->trace.n_slots - 1] = context;
	return st;
}

static int by_address(const void *a, const void *b)
{
	const struct seed *left = a;
	const struct seed *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static enum gpc_status add_seeds(struct source *source)
{
	struct gpc_trace_recorded *recorded = &source->builder->trace.recorded;
	uint64_t time_ns = source->n_events ? source->events[0].time_ns : 0;
	enum gpc_status st = GPC_OK;

	/* Their order is unknown. */
	qsort(source->seeds, source->n_seeds, sizeof *source->seeds, by_address);
	for (uint64_t i = 0; i < source->n_seeds && !st; i++) {
		const struct seed *seed = &source->seeds[i];

		if (seed->is_born_later)
			continue;
		st = add_alloc(
			source, seed->kind, seed->address, seed->size, time_ns, seed->context, 0);
		recorded->n_held_before++;
		recorded->held_before_bytes =
			gpc_bytes_add(recorded->held_before_bytes, seed->size);
	}
	return st;
}

/* A context was reset or destroyed: its memory is gone without frees. */
static enum gpc_status add_reset(struct source *source, const struct gpucache_event *event)
{
	const struct gpc_trace *trace = &source->builder->trace;
	const struct gpc_address_map *live = &source->builder->live;
	uint64_t *addresses = calloc(live->n_entries + 1, sizeof *addresses);
	enum gpc_status st = addresses ? GPC_OK : GPC_NO_METADATA;
	uint64_t n = 0;

	/* Frees change the map being walked, so they come later. */
	for (uint64_t i = 0; i < live->n_slots && !st; i++) {
		const struct gpc_address_slot *slot = &live->slots[i];

		if (slot->address &&
			source->contexts[trace->ops[(uintptr_t)slot->value - 1].slot] ==
				event->context)
			addresses[n++] = slot->address - 1;
	}
	for (uint64_t i = 0; i < n && !st; i++)
		st = add(source, GPC_TRACE_FREE, addresses[i], 0, event->time_ns, event->seq);
	free(addresses);
	return st;
}

/*
 * PyTorch returned cached memory although the driver never refused a request: the program asked for it.  One call
 * returns many blocks.
 */
static enum gpc_status add_empty_cache(struct source *source, const struct gpucache_event *event)
{
	const struct gpc_trace *trace = &source->builder->trace;

	if (trace->n_ops && trace->ops[trace->n_ops - 1].kind == GPC_TRACE_EMPTY_CACHE)
		return GPC_OK;
	return add(source, GPC_TRACE_EMPTY_CACHE, 0, 1, event->time_ns, event->seq);
}

static bool is_cache_emptied(const struct source *source, uint64_t i)
{
	const struct gpucache_event *event = &source->events[i];

	return source->is_of_tensors && event->kind == GPUCACHE_EVENT_FREE &&
	       !source->has_refused &&
	       (source->tensors.is_arena[i] || (event->alloc_kind == GPUCACHE_KIND_PHYSICAL &&
						       source->tensors.has_physical));
}

static enum gpc_status add_event(struct source *source, uint64_t i)
{
	const struct gpucache_event *event = &source->events[i];

	if (event->kind == GPUCACHE_EVENT_CONTEXT && event->detail == 2)
		return add_reset(source, event);
	if (is_cache_emptied(source, i))
		return add_empty_cache(source, event);
	if (!is_request_event(source, i))
		return GPC_OK;
	if (event->kind == GPUCACHE_EVENT_FREE)
		return add(source, GPC_TRACE_FREE, identity_of(event->alloc_kind, event->address),
			0, event->time_ns, event->seq);
	if (event->kind == GPUCACHE_EVENT_OOM)
		/* A refusal to PyTorch's cache says nothing about its tensors. */
		return source->tensors.has_torch ? GPC_OK
						 : add(source, GPC_TRACE_FAILURE, 0, event->size,
							   event->time_ns, event->seq);
	if (event->kind != GPUCACHE_EVENT_MALLOC)
		return GPC_OK;
	return add_alloc(source, event->alloc_kind, identity_of(event->alloc_kind, event->address),
		asked_for(event->requested, event->size), event->time_ns, event->context,
		event->seq);
}

static bool has_refused(const struct source *source)
{
	struct gpucache_counters counters;
	uint64_t n = 0;

	for (uint64_t i = 0; i < source->recording->regions[GPUCACHE_REGION_COUNTERS].count; i++)
		if (gpc_recording_read_counters(source->recording, i, &counters) &&
			counters.device == source->device)
			n += counters.n_driver_failed;
	return n > 0;
}

static enum gpc_status build(struct source *source)
{
	enum gpc_status st = GPC_OK;

	if (!read_events(source))
		return GPC_NO_METADATA;
	if (source->device < 0)
		source->device = busiest_device(source);
	source->builder->trace.recorded.device = source->device;
	keep_device(source);
	if (source->is_of_tensors) {
		source->has_refused = has_refused(source);
		st = gpc_tensors_find(&source->tensors, source->recording, source->device,
			source->events, source->n_events);
	}
	if (!st)
		st = find_seeds(source);
	source->contexts = calloc(source->n_seeds + source->n_events + 1, sizeof *source->contexts);
	if (!st && !source->contexts)
		st = GPC_NO_METADATA;
	if (!st)
		st = add_seeds(source);
	for (uint64_t i = 0; i < source->n_events && !st; i++)
		st = add_event(source, i);
	return st;
}

static enum gpc_status make(const struct gpc_recording *recording, int device, bool is_of_tensors,
	struct gpc_trace *ret_trace)
{
	struct source source = { .recording = recording,
		.builder = gpc_trace_begin(recording->path, GPC_TRACE_RECORDING),
		.device = device,
		.is_of_tensors = is_of_tensors };
	enum gpc_status st;

	if (!source.builder)
		return GPC_NO_METADATA;
	st = build(&source);
	source.builder->trace.is_damaged = recording->n_problems > 0;
	gpc_tensors_fini(&source.tensors);
	gpc_address_map_fini(&source.held);
	free(source.contexts);
	free(source.seeds);
	free(source.events);
	return gpc_trace_end(source.builder, st, ret_trace);
}

enum gpc_status gpc_trace_from_recording(
	const struct gpc_recording *recording, int device, struct gpc_trace *ret_trace)
{
	return make(recording, device, false, ret_trace);
}

enum gpc_status gpc_trace_of_tensors(
	const struct gpc_recording *recording, int device, struct gpc_trace *ret_trace)
{
	return make(recording, device, true, ret_trace);
}
