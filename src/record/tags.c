/* SPDX-License-Identifier: Apache-2.0 */
/* The largest holders by tag, from a scan of BLOCKS, at a failure only. */
#include "base/metamem.h"
#include "model/held.h"
#include "record/record.h"

/* Keeps holders[0 .. n) sorted, largest first.  Returns the bytes that did not fit. */
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
	struct gpucache_block block;
	uint64_t rest = 0;
	uint32_t n = 0;

	*ret_rest_bytes = 0;
	if (!all)
		return 0;
	for (uint32_t i = 0; i < rec->n_blocks; i++) {
		struct gpucache_tag_holder *holder;

		if (!gpc_held_read(&rec->blocks[i], device, &block) || block.tag >= end)
			continue;
		holder = &all[block.tag];
		holder->tag = block.tag;
		holder->n_blocks++;
		holder->bytes += block.requested;
	}
	for (uint32_t tag = 0; tag < end; tag++) {
		if (all[tag].n_blocks)
			rest += rank(holders, &n, max, &all[tag]);
	}
	gpc_metamem_unmap(all, size);
	*ret_rest_bytes = rest;
	return n;
}
