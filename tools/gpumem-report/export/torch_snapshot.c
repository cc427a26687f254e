/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as torch.cuda.memory and pytorch.org/memory_viz read it.
 *
 *      an arena: memory that PyTorch caches      a segment; its tensors and the gaps between them are the blocks
 *      adjacent blocks of one of our segments    one segment
 *      any other block                           a segment of its own
 *
 * The viewer replays events backwards from the segments, so an event outside all segments gets a segment of its own.
 * An allocation straight from the driver looks like one from our segments.  An arena freed before the end shows as a
 * block: the recording no longer marks it as an arena.
 */
#include <stdlib.h>

#include "format/array.h"
#include "format/memory.h"
#include "format/streams.h"
#include "model/torch.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/export/pickle.h"

struct segment {
	uint32_t device;
	uint64_t address;
	uint64_t size;
	bool is_arena;
};

struct snapshot {
	const struct gpc_report *report;
	struct gpc_pickle pickle;
	struct gpucache_block *blocks; /* by device and address; tensors last */
	size_t n_blocks;
	size_t n_others;              /* how many of them are no tensors */
	bool *is_shown;               /* by index into `blocks`: the tensor lies within an arena */
	struct gpucache_block *cells; /* of the segment being written */
	size_t n_cells;
	struct segment *segments; /* as written; sorted by write_traces() */
	size_t n_segments;
};

static bool is_tensor(const struct gpucache_block *block)
{
	return block->kind == GPUCACHE_KIND_TENSOR;
}

static bool is_arena(const struct gpucache_block *block)
{
	return block->state == GPUCACHE_BLOCK_LIVE && (block->flags & GPUCACHE_BLOCK_ARENA);
}

static bool is_on_device(unsigned kind)
{
	return gpucache_kind_is_of_device(kind) || gpucache_kind_place(kind) == GPUCACHE_WITHIN;
}

static int by_place(const void *a, const void *b)
{
	const struct gpucache_block *one = a;
	const struct gpucache_block *two = b;

	return GPC_ORDER(is_tensor(one), is_tensor(two)) ?: GPC_ORDER(one->device, two->device)
		       ?: GPC_ORDER(one->address, two->address);
}

static void collect(struct snapshot *snapshot)
{
	const struct gpc_recording *rec = snapshot->report->recording;
	uint64_t count = rec->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpucache_block block;

	snapshot->blocks = gpc_new(count + 1, sizeof *snapshot->blocks);
	snapshot->is_shown = gpc_new(count + 1, sizeof *snapshot->is_shown);
	snapshot->segments = gpc_new(count + 1, sizeof *snapshot->segments);
	/* A segment has at most one gap before each tensor, and one after the last. */
	snapshot->cells = gpc_new(2 * count + 2, sizeof *snapshot->cells);
	for (uint64_t i = 0; i < count; i++)
		if (gpc_recording_read_block(rec, i, &block) && is_on_device(block.kind) &&
			block.state != GPUCACHE_BLOCK_UNUSED && block.size &&
			block.device < GPC_MAX_ORDINAL &&
			gpc_report_wants(snapshot->report, block.device)) {
			snapshot->blocks[snapshot->n_blocks++] = block;
			snapshot->n_others += !is_tensor(&block);
		}
	qsort(snapshot->blocks, snapshot->n_blocks, sizeof *snapshot->blocks, by_place);
}

/* PyTorch's name of a stream: the driver's handle, or 0 for the default stream. */
static uint64_t handle_of(const struct snapshot *snapshot, uint32_t number)
{
	struct gpucache_stream stream;

	if (!gpc_recording_read_stream(snapshot->report->recording, number, &stream) ||
		stream.handle == GPUCACHE_STREAM_LEGACY)
		return 0;
	return stream.handle;
}

static void write_frames(struct snapshot *snapshot, uint32_t stack_id)
{
	const struct gpc_recording *rec = snapshot->report->recording;
	const size_t number = gpc_record_number(rec->stacks, rec->n_stacks, stack_id);
	const struct gpc_stack_frames *stack;
	struct gpc_pickle *pickle = &snapshot->pickle;

	/* Blocks whose stack was not recorded share list number n_stacks, which is empty. */
	gpc_pickle_constant(pickle, "frames");
	if (!gpc_pickle_begin_numbered_list(pickle, number))
		return;
	stack = number < rec->n_stacks ? gpc_frames_find(snapshot->report->frames, stack_id) : NULL;
	for (size_t i = 0; stack && i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];
		GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);

		if (!frame->function)
			gpc_frame_describe(frame, false, &text);
		gpc_pickle_item(pickle);
		gpc_pickle_begin_dict(pickle);
		gpc_pickle_put_word(pickle, "name", frame->function ? frame->function : text.buf);
		gpc_pickle_put_word(pickle, "filename",
			frame->file     ? frame->file
			: frame->module ? frame->module
					: "??");
		gpc_pickle_put_number(pickle, "line", frame->line);
		gpc_pickle_end_dict(pickle);
	}
	gpc_pickle_end_list(pickle);
}

static void write_cell(struct snapshot *snapshot, const struct gpucache_block *cell)
{
	static const char *const states[] = { [GPUCACHE_BLOCK_FREE] = "inactive",
		[GPUCACHE_BLOCK_LIVE] = "active_allocated",
		[GPUCACHE_BLOCK_PENDING] = "active_pending_free" };
	struct gpc_pickle *pickle = &snapshot->pickle;

	gpc_pickle_item(pickle);
	gpc_pickle_begin_dict(pickle);
	gpc_pickle_put_number(pickle, "address", cell->address);
	gpc_pickle_put_number(pickle, "size", cell->size);
	gpc_pickle_put_number(pickle, "requested_size", cell->requested);
	gpc_pickle_put_word(pickle, "state",
		cell->state <= GPUCACHE_BLOCK_PENDING ? states[cell->state] : "inactive");
	write_frames(snapshot, cell->stack);
	gpc_pickle_end_dict(pickle);
}

/* The bytes of live cells, and of pending ones if also_pending; `requested`: without rounding. */
static uint64_t sum_of(const struct snapshot *snapshot, bool also_pending, bool requested)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->n_cells; i++) {
		const struct gpucache_block *cell = &snapshot->cells[i];

		if (cell->state == GPUCACHE_BLOCK_LIVE ||
			(also_pending && cell->state == GPUCACHE_BLOCK_PENDING))
			sum = gpc_bytes_add(sum, requested ? cell->requested : cell->size);
	}
	return sum;
}

/* Writes the cells, which lie end to end, as one segment.  `arena`: the arena that they fill, or NULL. */
static void write_segment(struct snapshot *snapshot, const struct gpucache_block *arena)
{
	const struct gpucache_block *first = &snapshot->cells[0];
	const struct gpucache_block *last = &snapshot->cells[snapshot->n_cells - 1];
	uint64_t size = last->address + last->size - first->address;
	struct gpc_pickle *pickle = &snapshot->pickle;

	snapshot->segments[snapshot->n_segments++] =
		(struct segment){ first->device, first->address, size, arena != NULL };
	gpc_pickle_item(pickle);
	gpc_pickle_begin_dict(pickle);
	gpc_pickle_put_number(pickle, "device", first->device);
	gpc_pickle_put_number(pickle, "address", first->address);
	gpc_pickle_put_number(pickle, "total_size", size);
	gpc_pickle_put_number(pickle, "allocated_size", sum_of(snapshot, false, false));
	gpc_pickle_put_number(pickle, "active_size", sum_of(snapshot, true, false));
	gpc_pickle_put_number(pickle, "requested_size", sum_of(snapshot, true, true));
	gpc_pickle_put_number(
		pickle, "stream", handle_of(snapshot, GPUCACHE_BLOCK_STREAM(first->flags)));
	gpc_pickle_put_word(
		pickle, "segment_type", size > GPC_TORCH_SMALL_BUFFER ? "large" : "small");
	gpc_pickle_constant(pickle, "is_expandable");
	gpc_pickle_false(pickle);
	write_frames(snapshot, arena ? arena->stack : first->stack);
	gpc_pickle_constant(pickle, "blocks");
	gpc_pickle_begin_list(pickle);
	for (size_t i = 0; i < snapshot->n_cells; i++)
		write_cell(snapshot, &snapshot->cells[i]);
	gpc_pickle_end_list(pickle);
	gpc_pickle_end_dict(pickle);
	snapshot->n_cells = 0;
}

static void add_gap(struct snapshot *snapshot, uint32_t device, uint64_t from, uint64_t to)
{
	if (from < to)
		snapshot->cells[snapshot->n_cells++] =
			(struct gpucache_block){ .state = GPUCACHE_BLOCK_FREE,
				.device = (uint16_t)device,
				.address = from,
				.size = to - from };
}

/* Writes an arena with its tensors; *next is the first tensor that may lie in it, and is advanced. */
static void write_arena(struct snapshot *snapshot, const struct gpucache_block *arena, size_t *next)
{
	uint64_t end = arena->address + arena->size;
	uint64_t at = arena->address;

	for (; *next < snapshot->n_blocks; (*next)++) {
		const struct gpucache_block *tensor = &snapshot->blocks[*next];

		if (tensor->device > arena->device ||
			(tensor->device == arena->device && tensor->address >= end))
			break;
		if (tensor->device < arena->device || tensor->address < at ||
			tensor->size > end - tensor->address)
			continue;
		add_gap(snapshot, arena->device, at, tensor->address);
		snapshot->cells[snapshot->n_cells++] = *tensor;
		snapshot->is_shown[*next] = true;
		at = tensor->address + tensor->size;
	}
	add_gap(snapshot, arena->device, at, end);
	write_segment(snapshot, arena);
}

static bool follows(const struct gpucache_block *block, const struct gpucache_block *before)
{
	return !is_arena(block) && block->segment != GPUCACHE_NO_SEGMENT &&
	       block->segment == before->segment && block->device == before->device &&
	       block->address == before->address + before->size;
}

static void write_segments(struct snapshot *snapshot)
{
	size_t next = snapshot->n_others;

	gpc_pickle_constant(&snapshot->pickle, "segments");
	gpc_pickle_begin_list(&snapshot->pickle);
	for (size_t i = 0; i < snapshot->n_others; i++) {
		const struct gpucache_block *block = &snapshot->blocks[i];

		if (is_arena(block)) {
			write_arena(snapshot, block, &next);
			continue;
		}
		snapshot->cells[snapshot->n_cells++] = *block;
		while (i + 1 < snapshot->n_others && follows(&block[1], block)) {
			block = &snapshot->blocks[++i];
			snapshot->cells[snapshot->n_cells++] = *block;
		}
		write_segment(snapshot, NULL);
	}
	for (size_t i = snapshot->n_others; i < snapshot->n_blocks; i++) {
		if (snapshot->is_shown[i])
			continue;
		snapshot->cells[snapshot->n_cells++] = snapshot->blocks[i];
		write_segment(snapshot, NULL);
	}
	gpc_pickle_end_list(&snapshot->pickle);
}

static int by_address(const void *a, const void *b)
{
	const struct segment *one = a;
	const struct segment *two = b;

	return GPC_ORDER(one->device, two->device) ?: GPC_ORDER(one->address, two->address);
}

/* The segment that contains the event's block, or NULL. */
static const struct segment *segment_of(
	const struct snapshot *snapshot, const struct gpucache_event *event)
{
	struct segment key = { .device = event->device, .address = event->address };
	size_t n = GPC_ARRAY_COUNT(
		snapshot->n_segments, i, by_address(&snapshot->segments[i], &key) <= 0);
	const struct segment *found = n ? &snapshot->segments[n - 1] : NULL;

	if (!found || found->device != event->device ||
		event->address - found->address >= found->size ||
		event->size > found->size - (event->address - found->address))
		return NULL;
	return found;
}

static void write_entry(
	struct snapshot *snapshot, const struct gpucache_event *event, const char *action)
{
	const struct gpc_recording *rec = snapshot->report->recording;
	struct gpc_pickle *pickle = &snapshot->pickle;
	GPC_TEXT(text, GPC_LABEL_SIZE);

	gpc_pickle_item(pickle);
	gpc_pickle_begin_dict(pickle);
	gpc_pickle_constant(pickle, "action");
	gpc_pickle_constant(pickle, action);
	gpc_pickle_put_number(
		pickle, event->kind == GPUCACHE_EVENT_OOM ? "device_free" : "addr", event->address);
	gpc_pickle_put_number(pickle, "size", event->size);
	gpc_pickle_put_number(pickle, "stream", handle_of(snapshot, event->detail));
	gpc_pickle_put_number(pickle, "time_us", gpc_report_realtime(rec, event->time_ns) / 1000);
	if (event->tag) {
		gpc_recording_add_tag(rec, event->tag, &text);
		gpc_pickle_put_word(pickle, "user_metadata", text.buf);
	}
	write_frames(snapshot, event->stack);
	gpc_pickle_end_dict(pickle);
}

static void write_event(struct snapshot *snapshot, const struct gpucache_event *event)
{
	const struct segment *segment = segment_of(snapshot, event);
	bool is_malloc = event->kind == GPUCACHE_EVENT_MALLOC;

	if (event->kind == GPUCACHE_EVENT_OOM) {
		write_entry(snapshot, event, "oom");
		return;
	}
	if ((!is_malloc && event->kind != GPUCACHE_EVENT_FREE) || !is_on_device(event->alloc_kind))
		return;
	/* The event is of the arena itself, or of an earlier block at its address. */
	if (segment && segment->is_arena && event->alloc_kind != GPUCACHE_KIND_TENSOR)
		return;
	if (is_malloc) {
		if (!segment)
			write_entry(snapshot, event, "segment_alloc");
		write_entry(snapshot, event, "alloc");
		return;
	}
	write_entry(snapshot, event, "free_requested");
	write_entry(snapshot, event, "free_completed");
	if (!segment)
		write_entry(snapshot, event, "segment_free");
}

/* Writes a list for each ordinal up to the last GPU: the viewer finds a GPU's list by index. */
static void write_traces(struct snapshot *snapshot)
{
	struct gpc_pickle *pickle = &snapshot->pickle;
	struct gpucache_device device;
	int32_t last = -1;

	qsort(snapshot->segments, snapshot->n_segments, sizeof *snapshot->segments, by_address);
	if (snapshot->n_segments)
		last = (int32_t)snapshot->segments[snapshot->n_segments - 1].device;
	for (uint64_t i = 0; gpc_report_next_device(snapshot->report, &i, &device);)
		if (device.ordinal > last && device.ordinal < GPC_MAX_ORDINAL)
			last = device.ordinal;
	gpc_pickle_constant(pickle, "device_traces");
	gpc_pickle_begin_list(pickle);
	for (int32_t ordinal = 0; ordinal <= last; ordinal++) {
		struct gpc_event_cursor cursor = { 0 };
		struct gpucache_event event;

		gpc_pickle_item(pickle);
		gpc_pickle_begin_list(pickle);
		while (gpc_report_wants(snapshot->report, ordinal) &&
			gpc_recording_next_event(snapshot->report->recording, &cursor, &event))
			if (event.device == ordinal)
				write_event(snapshot, &event);
		gpc_pickle_end_list(pickle);
	}
	gpc_pickle_end_list(pickle);
}

enum gpc_exit gpc_export_snapshot(struct gpc_report *report)
{
	struct snapshot snapshot = { .report = report };

	collect(&snapshot);
	gpc_pickle_begin(&snapshot.pickle, report->out);
	gpc_pickle_begin_dict(&snapshot.pickle);
	write_segments(&snapshot);
	write_traces(&snapshot);
	gpc_pickle_constant(&snapshot.pickle, "allocator_settings");
	gpc_pickle_begin_dict(&snapshot.pickle);
	gpc_pickle_end_dict(&snapshot.pickle);
	gpc_pickle_end_dict(&snapshot.pickle);
	gpc_pickle_end(&snapshot.pickle);
	free(snapshot.blocks);
	free(snapshot.is_shown);
	free(snapshot.segments);
	free(snapshot.cells);
	return GPC_EXIT_MADE;
}
