/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces from recordings: the ring of events, and the blocks live before its oldest one.
 *
 * The caller chooses a view, which decides what counts as a request: either the allocations of the driver, or PyTorch's
 * tensors (tensors.h) and the allocations that its cache does not see.  In the first view, all other memory of the
 * device counts as held throughout, at its peak.
 */
#include <stdlib.h>
#include <string.h>

#include "alloc/size_class.h"
#include "format/array.h"
#include "format/recording.h"
#include "tools/replay/tensors.h"
#include "tools/replay/trace_build.h"

struct source {
	const struct gpc_recording *recording;
	struct gpc_trace_builder *builder;
	int device;
	bool is_of_tensors;
	struct gpc_tensors tensors; /* if the view is of tensors */
	bool has_refused;           /* the driver refused a request of this device */
	struct gpucache_event *events;
	uint64_t n_events;
	/* The blocks that may have been live before the first event.  Size 0: the walk found the block's allocation. */
	struct gpc_trace_row *seeds;
	uint64_t n_seeds;
	struct gpc_address_map held; /* identity -> its seed, during the walk */
};

/* True for device memory that no allocator serves.  False for managed memory, because it may be on the host. */
static bool is_beside(const struct source *source, unsigned kind)
{
	if (kind == GPUCACHE_KIND_PHYSICAL && source->is_of_tensors)
		return !source->tensors.has_physical;
	return kind != GPUCACHE_KIND_DEVICE && kind != GPUCACHE_KIND_MANAGED &&
	       gpucache_kind_place(kind) == GPUCACHE_ON_DEVICE;
}

/* True for what cudaMalloc was asked for, wherever it is: a larger device would have had it all. */
static bool is_plain(unsigned kind)
{
	return kind == GPUCACHE_KIND_DEVICE || kind == GPUCACHE_KIND_SPILLED;
}

/* True if the memory is a request in this view. */
static bool is_request(const struct source *source, unsigned kind, bool is_arena)
{
	if (is_plain(kind))
		return !source->is_of_tensors || !is_arena;
	return source->is_of_tensors && (kind == GPUCACHE_KIND_TENSOR || is_beside(source, kind));
}

static enum gpc_trace_way way_of(const struct source *source, unsigned kind)
{
	if (kind == GPUCACHE_KIND_TENSOR)
		return GPC_TRACE_CACHED;
	if (!is_plain(kind))
		return GPC_TRACE_BESIDE;
	return source->tensors.has_torch ? GPC_TRACE_DIRECT : GPC_TRACE_CACHED;
}

/* The identity of memory of cudaMalloc is its address.  Other kinds have keys of their own, so the kind is mixed in. */
static uint64_t identity_of(unsigned kind, uint64_t address)
{
	const bool is_address = is_plain(kind) || kind == GPUCACHE_KIND_TENSOR;

	return is_address ? address : address ^ (uint64_t)kind << 58;
}

static bool is_request_event(const struct source *source, uint64_t i)
{
	return is_request(source, source->events[i].alloc_kind,
		source->is_of_tensors && source->tensors.is_arena[i]);
}

/* True for memory that counts as held throughout: in the view of driver allocations, memory that is no request. */
static bool is_other(const struct source *source, unsigned kind)
{
	return !source->is_of_tensors && is_beside(source, kind);
}

static bool is_memory(const struct gpucache_event *event)
{
	return event->kind == GPUCACHE_EVENT_MALLOC || event->kind == GPUCACHE_EVENT_FREE;
}

/* False for addresses and sizes that no driver returns; a damaged file may contain any. */
static bool can_be(uint64_t address, uint64_t size)
{
	return address != 0 && address != UINT64_MAX && size <= GPC_SIZE_MAX;
}

static void read_events(struct source *source)
{
	const struct gpc_recording *recording = source->recording;
	struct gpc_trace_recorded *recorded = &source->builder->trace.recorded;
	uint64_t count = recording->regions[GPUCACHE_REGION_EVENTS].count;
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	source->events = gpc_new(count, sizeof *source->events);
	while (source->n_events < count && gpc_recording_next_event(recording, &cursor, &event))
		source->events[source->n_events++] = event;
	recorded->n_events = cursor.next;
	recorded->n_missing = cursor.n_holes;
	if (source->n_events) {
		recorded->first_event = source->events[0].seq;
		recorded->last_event = source->events[source->n_events - 1].seq;
	}
}

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

/* Removes the events of other devices, and those with impossible addresses or sizes. */
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

static struct gpc_trace_row alloc_row(const struct source *source, unsigned kind, uint64_t address,
	uint64_t requested, uint64_t size, uint32_t context)
{
	return (struct gpc_trace_row){
		.kind = GPC_TRACE_ALLOC,
		.identity = identity_of(kind, address),
		.size = requested ? requested : size,
		.stream = kind == GPUCACHE_KIND_TENSOR
				  ? gpc_tensors_stream(&source->tensors, address)
				  : 0,
		.context = context,
		.way = way_of(source, kind),
	};
}

/* The allocation of the memory that the event names. */
static struct gpc_trace_row alloc_row_of(
	const struct source *source, const struct gpucache_event *event)
{
	return alloc_row(source, event->alloc_kind, event->address, event->requested, event->size,
		event->context);
}

static void hold(struct source *source, struct gpc_trace_row row)
{
	struct gpc_trace_row *seed = gpc_address_map_find(&source->held, row.identity);

	/* If `seed` is a younger block at this address, the ring lost its allocation; the older block replaces it. */
	if (!seed) {
		seed = &source->seeds[source->n_seeds++];
		gpc_trace_map_insert(&source->held, row.identity, seed);
	}
	*seed = row;
}

/* Begins the walk with the blocks live at the end.  Returns the live bytes for which is_other() is true. */
static uint64_t hold_live(struct source *source)
{
	const struct gpc_recording *recording = source->recording;
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_BLOCKS];
	struct gpucache_block block;
	uint64_t others = 0;

	source->seeds = gpc_new(region->count + source->n_events, sizeof *source->seeds);
	for (uint64_t i = 0; i < region->count; i++) {
		if (!gpc_recording_read_block(recording, i, &block) ||
			block.state != GPUCACHE_BLOCK_LIVE || block.device != source->device ||
			!can_be(block.address, block.size) ||
			!can_be(block.address, block.requested))
			continue;
		if (is_request(source, block.kind, block.flags & GPUCACHE_BLOCK_ARENA))
			hold(source, alloc_row(source, block.kind, block.address, block.requested,
					     block.size, block.context));
		else if (is_other(source, block.kind))
			others = gpc_bytes_add(others, block.size);
	}
	source->builder->trace.recorded.n_torn = region->n_torn;
	return others;
}

/* Walks from the end of the ring to its beginning, and leaves the seeds. */
static void find_seeds(struct source *source)
{
	uint64_t others = hold_live(source);
	uint64_t most = 0;

	for (uint64_t i = source->n_events; i-- > 0;) {
		const struct gpucache_event *event = &source->events[i];
		bool is_malloc = event->kind == GPUCACHE_EVENT_MALLOC;

		most = others > most ? others : most;
		if (!is_memory(event))
			continue;
		if (is_request_event(source, i) && is_malloc) {
			struct gpc_trace_row *seed = gpc_address_map_take(
				&source->held, identity_of(event->alloc_kind, event->address));

			if (seed)
				seed->size = 0;
		} else if (is_request_event(source, i)) {
			hold(source, alloc_row_of(source, event));
		} else if (is_other(source, event->alloc_kind)) {
			/* Both saturate: if a hole hid a free, the sum would become negative. */
			others = (is_malloc ? gpc_bytes_less : gpc_bytes_add)(others, event->size);
		}
	}
	source->builder->trace.fixed_bytes = others > most ? others : most;
}

static int by_address(const void *a, const void *b)
{
	const struct gpc_trace_row *left = a;
	const struct gpc_trace_row *right = b;

	return GPC_ORDER(left->identity, right->identity);
}

static void add_seeds(struct source *source)
{
	struct gpc_trace_recorded *recorded = &source->builder->trace.recorded;
	uint64_t time_ns = source->n_events ? source->events[0].time_ns : 0;

	/* Nothing tells in which order the seeds were allocated; the order of addresses is as good as any. */
	qsort(source->seeds, source->n_seeds, sizeof *source->seeds, by_address);
	for (uint64_t i = 0; i < source->n_seeds; i++) {
		struct gpc_trace_row *seed = &source->seeds[i];

		if (!seed->size)
			continue;
		seed->time_ns = time_ns;
		gpc_trace_add(source->builder, seed);
		recorded->n_held_before++;
		recorded->held_before_bytes =
			gpc_bytes_add(recorded->held_before_bytes, seed->size);
	}
}

/* Adds an operation that allocates nothing. */
static void add(struct source *source, const struct gpucache_event *event,
	enum gpc_trace_op_kind kind, uint64_t identity, uint64_t size)
{
	const struct gpc_trace_row row = {
		.kind = kind,
		.identity = identity,
		.size = size,
		.time_ns = event->time_ns,
		.line = event->seq,
	};

	gpc_trace_add(source->builder, &row);
}

/* A reset or destroyed context took its memory along without any free, so frees are added. */
static void add_reset(struct source *source, const struct gpucache_event *event)
{
	const struct gpc_trace *trace = &source->builder->trace;
	const struct gpc_address_map *live = &source->builder->live;
	uint64_t *identities = gpc_new(live->n_entries, sizeof *identities);
	uint64_t n = 0;

	/* Collect the identities before adding the frees, which change the map. */
	for (uint64_t i = 0; i < live->n_slots; i++) {
		const struct gpc_address_slot *slot = &live->slots[i];

		if (slot->address &&
			trace->ops[(uintptr_t)slot->value - 1].context == event->context)
			identities[n++] = slot->address - 1;
	}
	for (uint64_t i = 0; i < n; i++)
		add(source, event, GPC_TRACE_FREE, identities[i], 0);
	free(identities);
}

/*
 * PyTorch returned cached memory although the driver never refused a request, so the program must have called
 * empty_cache().  One call returns many blocks, and only the first adds an operation.
 */
static void add_empty_cache(struct source *source, const struct gpucache_event *event)
{
	const struct gpc_trace *trace = &source->builder->trace;

	if (!trace->n_ops || trace->ops[trace->n_ops - 1].kind != GPC_TRACE_EMPTY_CACHE)
		add(source, event, GPC_TRACE_EMPTY_CACHE, 0, 0);
}

static bool is_cache_emptied(const struct source *source, uint64_t i)
{
	const struct gpucache_event *event = &source->events[i];

	return source->is_of_tensors && event->kind == GPUCACHE_EVENT_FREE &&
	       !source->has_refused &&
	       (source->tensors.is_arena[i] || (event->alloc_kind == GPUCACHE_KIND_PHYSICAL &&
						       source->tensors.has_physical));
}

static void add_alloc(struct source *source, const struct gpucache_event *event)
{
	struct gpc_trace_row row = alloc_row_of(source, event);

	row.time_ns = event->time_ns;
	row.line = event->seq;
	if (row.size)
		gpc_trace_add(source->builder, &row);
}

static void add_event(struct source *source, uint64_t i)
{
	const struct gpucache_event *event = &source->events[i];

	if (event->kind == GPUCACHE_EVENT_CONTEXT && event->detail == 2)
		add_reset(source, event);
	else if (is_cache_emptied(source, i))
		add_empty_cache(source, event);
	else if (!is_request_event(source, i))
		return;
	else if (event->kind == GPUCACHE_EVENT_FREE)
		add(source, event, GPC_TRACE_FREE, identity_of(event->alloc_kind, event->address),
			0);
	/* With PyTorch, OOM events are of its arenas: their sizes are not those of tensors. */
	else if (event->kind == GPUCACHE_EVENT_OOM && !source->tensors.has_torch && event->size)
		add(source, event, GPC_TRACE_FAILURE, 0, event->size);
	else if (event->kind == GPUCACHE_EVENT_MALLOC)
		add_alloc(source, event);
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

static void find_gpu(const struct gpc_recording *recording, struct gpc_trace_recorded *recorded)
{
	struct gpc_text name = gpc_text_init(recorded->gpu, sizeof recorded->gpu);
	struct gpucache_device device;
	struct gpucache_oom oom;

	if (!gpc_recording_find_device(recording, recorded->device, &device))
		return;
	gpc_text_add_clean(&name, device.name, strlen(device.name));
	recorded->total_bytes = device.total_bytes;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_OOMS].count; i++)
		recorded->has_failed |= gpc_recording_read_oom(recording, i, &oom) &&
					oom.device == recorded->device && !oom.recovered;
}

static void build(struct source *source)
{
	read_events(source);
	if (source->device < 0)
		source->device = busiest_device(source);
	source->builder->trace.recorded.device = source->device;
	find_gpu(source->recording, &source->builder->trace.recorded);
	keep_device(source);
	if (source->is_of_tensors) {
		source->has_refused = has_refused(source);
		gpc_tensors_find(&source->tensors, source->recording, source->device,
			source->events, source->n_events);
	}
	find_seeds(source);
	add_seeds(source);
	for (uint64_t i = 0; i < source->n_events; i++)
		add_event(source, i);
}

void gpc_trace_from_recording(const struct gpc_recording *recording, int device, bool is_of_tensors,
	struct gpc_trace *ret_trace)
{
	struct source source = { .recording = recording,
		.builder = gpc_trace_begin(recording->path, true),
		.device = device,
		.is_of_tensors = is_of_tensors };

	build(&source);
	source.builder->trace.is_damaged = recording->n_problems > 0;
	gpc_tensors_fini(&source.tensors);
	gpc_address_map_fini(&source.held);
	free(source.seeds);
	free(source.events);
	(void)gpc_trace_end(source.builder, GPC_OK, ret_trace);
}
