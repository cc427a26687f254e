/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds most by tag: a look over BLOCKS, at a failure only. */
#include "base/balance.h"
#include "base/metamem.h"
#include "record/record.h"

/*
 * What counts of a block; false where it is being changed, is not live, or not of the device.  Nor
 * does a context or module count: it serves all ranges, whichever its call stood in.
 */
static bool read_block(
	const struct gpucache_block *slot, uint32_t device, uint32_t *ret_tag, uint64_t *ret_bytes)
{
	const gpc_half_word *half = (const void *)slot;
	const gpc_word *word = (const void *)slot;
	uint32_t seq = __atomic_load_n(half, __ATOMIC_ACQUIRE);
	uint32_t what = __atomic_load_n(half + 1, __ATOMIC_ACQUIRE);
	uint64_t bytes = __atomic_load_n(word + 3, __ATOMIC_ACQUIRE);
	uint64_t tag = __atomic_load_n(word + 7, __ATOMIC_ACQUIRE);

	if (seq & 1 || __atomic_load_n(half, __ATOMIC_RELAXED) != seq)
		return false;
	if (what >> 16 != device ||
		!gpucache_is_held(what & 0xff, what >> 8 & 0xff, (uint32_t)(tag >> 32)) ||
		gpc_kind_is_implicit(what >> 8 & 0xff))
		return false;
	*ret_tag = (uint32_t)tag;
	*ret_bytes = bytes;
	return true;
}

/* Keeps holders[0 .. n) sorted, biggest first; the bytes that found no place. */
static uint64_t rank(struct gpucache_tag_holder *holders, uint32_t *n, uint32_t max,
	const struct gpucache_tag_holder *holder)
{
	uint64_t left_out = 0;
	uint32_t at = *n;

	if (at == max) {
		if (at == 0 || holders[at - 1].bytes >= holder->bytes)
			return holder->bytes;
		at--;
		left_out = holders[at].bytes;
	} else {
		++*n;
	}
	for (; at > 0 && holders[at - 1].bytes < holder->bytes; at--)
		holders[at] = holders[at - 1];
	holders[at] = *holder;
	return left_out;
}

uint32_t gpc_record_top_tags(const struct gpc_record *rec, uint32_t device, uint32_t end,
	struct gpucache_tag_holder *holders, uint32_t max, uint64_t *ret_rest_bytes)
{
	size_t size = end * sizeof(struct gpucache_tag_holder);
	struct gpucache_tag_holder *all = end > 0 ? gpc_metamem_map(size) : NULL;
	uint64_t rest = 0;
	uint64_t bytes;
	uint32_t n = 0;
	uint32_t tag;

	*ret_rest_bytes = 0;
	if (!all)
		return 0;
	for (uint32_t i = 0; i < rec->n_blocks; i++) {
		if (!read_block(&rec->blocks[i], device, &tag, &bytes) || tag >= end)
			continue;
		all[tag].tag = tag;
		all[tag].n_blocks++;
		all[tag].bytes += bytes;
	}
	for (tag = 0; tag < end; tag++) {
		if (all[tag].n_blocks)
			rest += rank(holders, &n, max, &all[tag]);
	}
	gpc_metamem_unmap(all, size);
	*ret_rest_bytes = rest;
	return n;
}
