/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the live blocks; the pinned steps are counted in a hash set of their numbers, at most half full. */
#include "oom/plain.h"

#include "base/metamem.h"
#include "model/held.h"
#include "model/torch.h"

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

/* A set of steps by their numbers: `size` entries, a power of two. */
struct steps {
	uint64_t *set;
	uint64_t size;
};

/* Room for one step of each block; false: there is no memory. */
static bool map_steps(struct steps *steps, uint32_t n_blocks)
{
	steps->size = 2;
	while (steps->size < 4 * (uint64_t)n_blocks)
		steps->size *= 2;
	steps->set = gpc_metamem_map(steps->size * sizeof *steps->set);
	return steps->set;
}

static void unmap_steps(const struct steps *steps)
{
	gpc_metamem_unmap(steps->set, steps->size * sizeof *steps->set);
}

/* The entry of a step, or the empty one where it would be. */
static uint64_t *entry_of(const struct steps *steps, uint64_t step)
{
	uint64_t at = step * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (steps->size - 1);

	while (steps->set[at] && steps->set[at] != step)
		at = (at + 1) & (steps->size - 1);
	return &steps->set[at];
}

/* False if it is there already. */
static bool add_step(struct steps *steps, uint64_t step)
{
	uint64_t *entry = entry_of(steps, step);
	bool is_new = *entry != step;

	*entry = step;
	return is_new;
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
	uint64_t free_bytes = 0;
	uint64_t live = 0;
	struct steps steps;

	*ret_n_blocks = 0;
	if (!map_steps(&steps, n_blocks))
		return GPUCACHE_UNKNOWN;
	for (uint32_t i = 0; i < n_blocks; i++) {
		if (!read_direct(&blocks[i], device, &block) || block.size >= GPC_DRIVER_STEP)
			continue;
		if (add_step(&steps, slot_address(&blocks[i]) / GPC_DRIVER_STEP))
			free_bytes += GPC_DRIVER_STEP;
		live += block.size;
		*ret_n_blocks += 1;
	}
	unmap_steps(&steps);
	return gpc_bytes_less(free_bytes, live);
}

/* True if a tensor begins in the block, which begins with a step. */
static bool has_tensor(const struct steps *steps, uint64_t address, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += GPC_DRIVER_STEP)
		if (*entry_of(steps, (address + at) / GPC_DRIVER_STEP))
			return true;
	return false;
}

uint64_t gpc_plain_idle(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint32_t *ret_segment)
{
	struct gpucache_block block;
	struct steps steps;
	uint64_t largest = 0;
	uint64_t idle = 0;

	*ret_segment = GPUCACHE_NO_SEGMENT;
	if (!map_steps(&steps, n_blocks))
		return GPUCACHE_UNKNOWN;
	for (uint32_t i = 0; i < n_blocks; i++)
		if (gpc_held_read_live(&blocks[i], device, &block) &&
			block.kind == GPUCACHE_KIND_TENSOR)
			(void)add_step(&steps, slot_address(&blocks[i]) / GPC_DRIVER_STEP);
	for (uint32_t i = 0; i < n_blocks; i++) {
		if (!gpc_held_read_live(&blocks[i], device, &block) ||
			!(block.flags & GPUCACHE_BLOCK_ARENA))
			continue;
		/* Its tensors lie at the addresses where it is mapped. */
		if (block.kind == GPUCACHE_KIND_PHYSICAL) {
			idle = GPUCACHE_UNKNOWN;
			break;
		}
		if (block.size <= GPC_TORCH_SMALL_BUFFER ||
			has_tensor(&steps, slot_address(&blocks[i]), block.size))
			continue;
		idle = gpc_bytes_add(idle, block.size);
		if (block.size > largest)
			*ret_segment = block.segment;
		largest = gpc_larger(largest, block.size);
	}
	unmap_steps(&steps);
	return idle;
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
