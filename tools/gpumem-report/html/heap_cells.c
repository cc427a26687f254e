/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts blocks and segments by address, and walks over both at once: O(n log n).  If there are too many cells to draw,
 * small neighbours are merged.
 */
#include "tools/gpumem-report/html/heap_cells.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"

struct maker {
	struct gpc_heap_view *heap;
	struct gpucache_block *blocks; /* by address, an arena before its tensors */
	size_t n_blocks;
	struct gpc_row *rows;    /* scratch: the live blocks of one segment, by stack */
	enum gpc_cell_state gap; /* of a segment, in no block */
};

static bool is_tensor(const struct gpucache_block *block)
{
	return block->kind == GPUCACHE_KIND_TENSOR;
}

static int by_address(const void *left, const void *right)
{
	const struct gpucache_block *a = left;
	const struct gpucache_block *b = right;

	return GPC_ORDER(a->address, b->address) ?: is_tensor(a) - is_tensor(b);
}

static int by_place(const void *left, const void *right)
{
	const struct gpucache_segment *a = left;
	const struct gpucache_segment *b = right;

	return GPC_ORDER(a->address, b->address);
}

static int by_start(const void *left, const void *right)
{
	const struct gpc_heap_segment *a = left;
	const struct gpc_heap_segment *b = right;

	return GPC_ORDER(a->address, b->address);
}

static bool is_in_segment(const struct gpc_blocks_at *at, const struct gpucache_block *block)
{
	size_t i = GPC_ARRAY_COUNT(at->n_segments, k, at->segments[k].address <= block->address);

	return i > 0 && block->address - at->segments[i - 1].address < at->segments[i - 1].size;
}

static void make_segments(struct gpc_heap_view *heap, const struct gpc_blocks_at *at)
{
	heap->segments = gpc_new(at->n_blocks + at->n_segments, sizeof *heap->segments);
	for (size_t i = 0; i < at->n_segments; i++)
		heap->segments[heap->n_segments++] =
			(struct gpc_heap_segment){ .address = at->segments[i].address,
				.size = at->segments[i].size,
				.time_ns = at->segments[i].time_ns,
				.stack = at->segments[i].stack,
				.kind = GPUCACHE_KIND_DEVICE,
				.is_ours = true };
	for (size_t i = 0; i < at->n_blocks; i++)
		if (!is_tensor(&at->blocks[i]) && !is_in_segment(at, &at->blocks[i]))
			heap->segments[heap->n_segments++] =
				(struct gpc_heap_segment){ .address = at->blocks[i].address,
					.size = at->blocks[i].size,
					.time_ns = at->blocks[i].time_ns,
					.stack = at->blocks[i].stack,
					.kind = at->blocks[i].kind };
	qsort(heap->segments, heap->n_segments, sizeof *heap->segments, by_start);
}

static void add_cell(
	struct maker *maker, struct gpc_heap_segment *segment, const struct gpc_heap_cell *cell)
{
	segment->bytes[cell->state] = gpc_bytes_add(segment->bytes[cell->state], cell->size);
	maker->heap->cells[maker->heap->n_cells++] = *cell;
}

static void add_gap(struct maker *maker, struct gpc_heap_segment *segment, uint64_t from,
	uint64_t to, enum gpc_cell_state state)
{
	if (from < to)
		add_cell(maker, segment,
			&(struct gpc_heap_cell){ .size = to - from, .state = (uint8_t)state });
}

static uint8_t state_of(const struct gpucache_block *block)
{
	static const uint8_t states[] = { [GPUCACHE_BLOCK_FREE] = GPC_CELL_FREE,
		[GPUCACHE_BLOCK_LIVE] = GPC_CELL_LIVE,
		[GPUCACHE_BLOCK_PENDING] = GPC_CELL_PENDING };

	return block->state < sizeof states ? states[block->state] : (uint8_t)GPC_CELL_UNKNOWN;
}

/* Makes the segment's cells from its blocks, from *at on; moves *at behind them.  Skips blocks that cross its end. */
static void cut(struct maker *maker, struct gpc_heap_segment *segment, size_t *at)
{
	uint64_t filled = 0;
	uint64_t arena_end = 0;

	while (*at < maker->n_blocks && maker->blocks[*at].address < segment->address)
		(*at)++;
	for (; *at < maker->n_blocks; (*at)++) {
		const struct gpucache_block *block = &maker->blocks[*at];
		uint64_t offset = block->address - segment->address;

		if (offset >= segment->size)
			break;
		if (block->size > segment->size - offset || offset < filled)
			continue;
		if (offset > arena_end && filled < arena_end) {
			add_gap(maker, segment, filled, arena_end, GPC_CELL_TORCH);
			filled = arena_end;
		}
		add_gap(maker, segment, filled, offset,
			offset < arena_end || (is_tensor(block) && offset == arena_end)
				? GPC_CELL_TORCH
				: maker->gap);
		filled = offset;
		if (block->flags & GPUCACHE_BLOCK_ARENA) {
			arena_end = offset + block->size;
			continue;
		}
		add_cell(maker, segment,
			&(struct gpc_heap_cell){ block->size, block->requested, block->stack,
				block->tag, state_of(block) });
		filled = offset + block->size;
	}
	if (filled < arena_end) {
		add_gap(maker, segment, filled, arena_end, GPC_CELL_TORCH);
		filled = arena_end;
	}
	add_gap(maker, segment, filled, segment->size, maker->gap);
	segment->end_cell = maker->heap->n_cells;
}

static void find_pins(struct maker *maker, struct gpc_heap_segment *segment, size_t first)
{
	size_t n = 0;

	for (size_t i = first; i < segment->end_cell; i++) {
		const struct gpc_heap_cell *cell = &maker->heap->cells[i];

		if (cell->state == GPC_CELL_LIVE)
			maker->rows[n++] = (struct gpc_row){
				.id = cell->stack, .bytes = cell->size, .n_blocks = 1
			};
	}
	segment->n_pins = n;
	n = gpc_rows_unite(maker->rows, n);
	gpc_rows_by_bytes(maker->rows, n);
	for (size_t i = 0; i < n && i < GPC_HEAP_MAX_PINS; i++)
		segment->pins[i] = maker->rows[i];
}

/* Merges adjacent cells if each is smaller than 1/parts of the segment. */
static void merge(struct gpc_heap_view *heap, uint64_t parts)
{
	size_t from = 0;
	size_t to = 0;

	for (size_t s = 0; s < heap->n_segments; s++) {
		struct gpc_heap_segment *segment = &heap->segments[s];
		size_t first = to;

		for (; from < segment->end_cell; from++) {
			struct gpc_heap_cell *last = to > first ? &heap->cells[to - 1] : NULL;
			const struct gpc_heap_cell *cell = &heap->cells[from];

			if (last && last->size < segment->size / parts &&
				cell->size < segment->size / parts) {
				last->state =
					last->state == cell->state ? last->state : GPC_CELL_MIXED;
				last->size = gpc_bytes_add(last->size, cell->size);
				last->requested = gpc_bytes_add(last->requested, cell->requested);
				last->stack = last->stack == cell->stack ? last->stack : 0;
			} else {
				heap->cells[to++] = *cell;
			}
		}
		segment->end_cell = to;
	}
	heap->n_cells = to;
	heap->is_merged = true;
}

bool gpc_heap_view_create(struct gpc_heap_view *heap, const struct gpc_recording *recording,
	int32_t ordinal, uint64_t time_ns)
{
	struct gpc_blocks_at at;
	struct maker maker = { .heap = heap,
		.gap = time_ns == GPC_TIME_OF_END ? GPC_CELL_UNKNOWN : GPC_CELL_FREE };
	size_t next = 0;

	*heap = (struct gpc_heap_view){ 0 };
	if (!gpc_blocks_at_create(&at, recording, ordinal, time_ns))
		return false;
	qsort(at.segments, at.n_segments, sizeof *at.segments, by_place);
	make_segments(heap, &at);
	qsort(at.blocks, at.n_blocks, sizeof *at.blocks, by_address);
	maker.blocks = at.blocks;
	maker.n_blocks = at.n_blocks;
	maker.rows = gpc_new(at.n_blocks, sizeof *maker.rows);
	/* Per block a cell and the gap before it (an arena: the gap at its end), per segment two gaps at its end. */
	heap->cells = gpc_new(2 * at.n_blocks + 2 * heap->n_segments, sizeof *heap->cells);
	for (size_t i = 0; i < heap->n_segments; i++) {
		size_t first = heap->n_cells;

		cut(&maker, &heap->segments[i], &next);
		find_pins(&maker, &heap->segments[i], first);
	}
	for (uint64_t parts = 4096; heap->n_cells > GPC_HEAP_MAX_CELLS && parts > 1; parts /= 4)
		merge(heap, parts);
	free(maker.rows);
	gpc_blocks_at_fini(&at);
	return true;
}

void gpc_heap_view_fini(struct gpc_heap_view *heap)
{
	free(heap->segments);
	free(heap->cells);
	*heap = (struct gpc_heap_view){ 0 };
}

const char *gpc_cell_word(unsigned state)
{
	static const char *const words[] = { "not recorded", "gpucache's cache, free", "live",
		"pending", "PyTorch's cache, in no tensor", "small pieces" };

	return state < GPC_CELL_STATE_COUNT ? words[state] : words[0];
}
