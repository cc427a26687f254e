/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of one slot of BLOCKS, concurrent with its writer.
 *
 * Threads   Any.
 * Failure   False: the slot is being written, or does not match.
 */
#ifndef GPC_MODEL_HELD_H
#define GPC_MODEL_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"
#include "model/balance.h"

/* Reads a live block of the device: all fields except address and context. */
static inline bool gpc_held_read_live(
	const struct gpucache_block *slot, uint32_t device, struct gpucache_block *ret_block)
{
	uint32_t seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);
	struct gpucache_block block = {
		.state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED),
		.kind = __atomic_load_n(&slot->kind, __ATOMIC_RELAXED),
		.device = __atomic_load_n(&slot->device, __ATOMIC_RELAXED),
		.size = __atomic_load_n(&slot->size, __ATOMIC_RELAXED),
		.requested = __atomic_load_n(&slot->requested, __ATOMIC_RELAXED),
		.time_ns = __atomic_load_n(&slot->time_ns, __ATOMIC_RELAXED),
		.stack = __atomic_load_n(&slot->stack, __ATOMIC_RELAXED),
		.thread = __atomic_load_n(&slot->thread, __ATOMIC_RELAXED),
		.segment = __atomic_load_n(&slot->segment, __ATOMIC_RELAXED),
		.tag = __atomic_load_n(&slot->tag, __ATOMIC_RELAXED),
		.flags = __atomic_load_n(&slot->flags, __ATOMIC_ACQUIRE),
	};

	if (seq & 1 || __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) != seq)
		return false;
	if (block.device != device || block.state != GPUCACHE_BLOCK_LIVE)
		return false;
	*ret_block = block;
	return true;
}

/*
 * As gpc_held_read_live, but only a block that counts for its stack and tag (gpucache_is_held).  Contexts
 * and modules do not count: the program never requested their memory.
 */
static inline bool gpc_held_read(
	const struct gpucache_block *slot, uint32_t device, struct gpucache_block *ret_block)
{
	return gpc_held_read_live(slot, device, ret_block) &&
	       gpucache_is_held(ret_block->state, ret_block->kind, ret_block->flags) &&
	       !gpc_kind_is_implicit(ret_block->kind);
}

#endif
