/* SPDX-License-Identifier: Apache-2.0 */
/* Stores a whole slot of BLOCKS, as the runtime does word by word. */
#ifndef GPC_TESTS_UNIT_RECORD_BLOCK_H
#define GPC_TESTS_UNIT_RECORD_BLOCK_H

#include "record/store.h"

static inline void record_block(
	struct gpc_record *rec, uint32_t number, const struct gpucache_block *block)
{
	struct gpc_record_slot slot = gpc_record_open_block(rec, number,
		block->state | (uint32_t)block->kind << 8 | (uint32_t)block->device << 16);

	if (!slot.is_open)
		return;
	gpc_record_put(slot, 1, block->address);
	gpc_record_put(slot, 2, block->size);
	gpc_record_put(slot, 3, block->requested);
	gpc_record_put(slot, 4, block->time_ns);
	gpc_record_put(slot, 5, gpc_record_halves(block->stack, block->thread));
	gpc_record_put(slot, 6, gpc_record_halves(block->segment, block->context));
	gpc_record_put(slot, 7, gpc_record_halves(block->tag, block->flags));
	gpc_record_close_block(rec, slot);
}

#endif
