/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the live blocks; the pinned steps are counted in a hash set of their numbers, at most half full. */
#include "oom/plain.h"

#include "base/metamem.h"
#include "model/held.h"

static uint64_t round_up(uint64_t size)
{
	return gpc_bytes_add(size, GPC_DRIVER_STEP - 1) / GPC_DRIVER_STEP * GPC_DRIVER_STEP;
}

uint64_t gpc_plain_bytes(uint64_t size)
{
	if (size == 0)
		return 0;
	return size < GPC_DRIVER_STEP ? GPC_DRIVER_STEP / (GPC_DRIVER_STEP / size) : round_up(size);
}

uint64_t gpc_plain_live(
	const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device, uint64_t requested)
{
	struct gpucache_block block;
	uint64_t plain = 0;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < n_blocks; i++) {
		if (!gpc_held_read_live(&blocks[i], device, &block) ||
			block.segment == GPUCACHE_NO_SEGMENT || block.kind != GPUCACHE_KIND_DEVICE)
			continue;
		seen = gpc_bytes_add(seen, block.requested);
		plain = gpc_bytes_add(plain, gpc_plain_bytes(block.requested));
	}
	/* Other threads allocate between the readings of the counters and of the slots, so 1/64 may be missing. */
	return seen < requested - requested / 64 ? GPUCACHE_UNKNOWN : plain;
}

static uint64_t slot_address(const struct gpucache_block *slot)
{
	return __atomic_load_n(&slot->address, __ATOMIC_RELAXED);
}

/* Adds a step to the set of `size` entries, a power of two; false if it is there. */
static bool add_step(uint64_t *set, uint64_t size, uint64_t step)
{
	uint64_t at = step * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (size - 1);

	for (; set[at]; at = (at + 1) & (size - 1))
		if (set[at] == step)
			return false;
	set[at] = step;
	return true;
}

/* True for a live block that is the driver's own, in one piece of its linear memory. */
static bool read_direct(
	const struct gpucache_block *slot, uint32_t device, struct gpucache_block *ret_block)
{
	return gpc_held_read_live(slot, device, ret_block) &&
	       ret_block->segment == GPUCACHE_NO_SEGMENT &&
	       (ret_block->kind == GPUCACHE_KIND_DEVICE ||
		       ret_block->kind == GPUCACHE_KIND_PITCHED);
}

uint64_t gpc_plain_waste(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t *ret_n_blocks)
{
	struct gpucache_block block;
	uint64_t size = 2;
	uint64_t free_bytes = 0;
	uint64_t live = 0;
	uint64_t *set;

	*ret_n_blocks = 0;
	while (size < 4 * (uint64_t)n_blocks)
		size *= 2;
	set = gpc_metamem_map(size * sizeof *set);
	if (!set)
		return GPUCACHE_UNKNOWN;
	for (uint32_t i = 0; i < n_blocks; i++) {
		if (!read_direct(&blocks[i], device, &block) || block.size >= GPC_DRIVER_STEP)
			continue;
		if (add_step(set, size, slot_address(&blocks[i]) / GPC_DRIVER_STEP))
			free_bytes += GPC_DRIVER_STEP;
		live += block.size;
		*ret_n_blocks += 1;
	}
	gpc_metamem_unmap(set, size * sizeof *set);
	return gpc_bytes_less(free_bytes, live);
}

uint64_t gpc_plain_tails(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device)
{
	struct gpucache_block block;
	uint64_t tails = 0;

	for (uint32_t i = 0; i < n_blocks; i++)
		if (read_direct(&blocks[i], device, &block) && block.size >= GPC_DRIVER_STEP)
			tails += round_up(block.size) - block.size;
	return tails;
}
