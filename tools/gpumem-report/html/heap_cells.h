/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of one device at a moment, ready to draw: segments cut into cells.
 *
 *      segment   [ block | arena of PyTorch: tensor, gap, tensor | block ]
 *      cells     [ live  | live  torch  live                     | free  ]
 *
 * Memory that no pool serves appears as a segment of one block, and so does a block whose segment was not recorded.
 *
 * Invariants  1 The cells of a segment are contiguous and fill it.  2 Merging cells leaves the sums of a segment as
 *               they were.
 * Threads     One.
 * Failure     As gpc_blocks_at_create.
 * Limits      With more than GPC_HEAP_MAX_CELLS cells, small neighbours of a segment share one, of state
 *             GPC_CELL_MIXED if their states differ.
 */
#ifndef GPC_REPORT_HEAP_H
#define GPC_REPORT_HEAP_H

#include "tools/gpumem-report/holders/holder_rows.h"
#include "tools/gpumem-report/html/blocks_at.h"

#define GPC_HEAP_MAX_CELLS 40000
#define GPC_HEAP_MAX_PINS  5

enum gpc_cell_state {
	GPC_CELL_UNKNOWN, /* at the end: no block was recorded there */
	GPC_CELL_FREE,
	GPC_CELL_LIVE,
	GPC_CELL_PENDING,
	GPC_CELL_TORCH, /* PyTorch's, in no tensor */
	GPC_CELL_MIXED,
	GPC_CELL_STATE_COUNT,
};

struct gpc_heap_cell {
	uint64_t size;
	uint64_t requested;
	uint32_t stack;
	uint32_t tag;
	uint8_t state; /* enum gpc_cell_state */
};

struct gpc_heap_segment {
	uint64_t address;
	uint64_t size;
	uint64_t time_ns;
	uint32_t stack;                       /* of the request that grew the pool */
	uint8_t kind;                         /* enum gpucache_kind; DEVICE if is_ours */
	bool is_ours;                         /* a segment of a pool */
	uint64_t bytes[GPC_CELL_STATE_COUNT]; /* by state, without MIXED */
	uint64_t n_pins; /* live blocks and tensors, which keep the segment from being given back */
	/* The stacks that hold most of these bytes, by id; rows that are not used have n_blocks 0. */
	struct gpc_row pins[GPC_HEAP_MAX_PINS];
	size_t end_cell; /* one past its last cell */
};

struct gpc_heap_view {
	struct gpc_heap_segment *segments; /* by address */
	size_t n_segments;
	struct gpc_heap_cell *cells;
	size_t n_cells;
	bool is_merged;
};

/*
 * Reads the heap of one device at a time, or at GPC_TIME_OF_END.  False with an empty heap if the recording does not have
 * it.  Before the end, cached memory includes what was freed and pending.
 */
bool gpc_heap_view_create(struct gpc_heap_view *heap, const struct gpc_recording *recording,
	int32_t ordinal, uint64_t time_ns);
void gpc_heap_view_fini(struct gpc_heap_view *heap);

/* The word for an enum gpc_cell_state: "live", "cached", ...; any number is valid. */
const char *gpc_cell_word(unsigned state);

#endif
