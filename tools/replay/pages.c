/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request goes to the place where it takes the fewest pages from others: those that no block lies on yet; among
 * equals where the fewest have to be mapped, into the smallest gap, and to the lowest.  Looked at are both ends of each gap, since there a page may be shared,
 * and the starts of mapped runs within it.
 */
#include "tools/replay/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/array.h"

#define FEW_BLOCKS 256

static uint32_t first_page(uint64_t offset)
{
	return (uint32_t)(offset / GPC_PAGE_BYTES);
}

static uint32_t end_page(uint64_t offset, uint64_t size)
{
	return (uint32_t)((offset + size + GPC_PAGE_BYTES - 1) / GPC_PAGE_BYTES);
}

enum gpc_status gpc_pages_init(
	struct gpc_pages *pages, struct gpc_machine *machine, uint64_t address, uint64_t size)
{
	*pages = (struct gpc_pages){ .machine = machine, .address = address };
	pages->n_pages = first_page(size);
	pages->is_mapped = calloc(pages->n_pages, sizeof *pages->is_mapped);
	pages->n_on = calloc(pages->n_pages, sizeof *pages->n_on);
	if (pages->is_mapped && pages->n_on)
		return GPC_OK;
	gpc_pages_fini(pages);
	return GPC_NO_METADATA;
}

void gpc_pages_fini(struct gpc_pages *pages)
{
	free(pages->is_mapped);
	free(pages->n_on);
	free(pages->blocks);
	*pages = (struct gpc_pages){ 0 };
}

struct place {
	uint64_t offset;
	uint64_t gap;
	uint32_t n_bare; /* pages that no block lies on yet */
	uint32_t n_new;  /* and of these, not mapped there */
	uint32_t index;  /* among the blocks */
	bool is_found;
};

static bool is_better(const struct place *a, const struct place *b)
{
	if (a->n_bare != b->n_bare)
		return a->n_bare < b->n_bare;
	return a->n_new != b->n_new ? a->n_new < b->n_new : a->gap < b->gap;
}

static void try_place(const struct gpc_pages *pages, uint64_t offset, uint64_t size, uint64_t gap,
	uint32_t index, struct place *best)
{
	uint32_t end = end_page(offset, size);
	struct place place = { .offset = offset, .gap = gap, .index = index, .is_found = true };

	for (uint32_t page = first_page(offset); page < end; page++) {
		place.n_bare += !pages->n_on[page];
		place.n_new += !pages->is_mapped[page];
	}
	if (!best->is_found || is_better(&place, best))
		*best = place;
}

static void try_gap(const struct gpc_pages *pages, uint64_t start, uint64_t end, uint64_t size,
	uint32_t index, struct place *best)
{
	uint64_t gap = end - start;

	if (gap < size)
		return;
	try_place(pages, start, size, gap, index, best);
	try_place(pages, end - size, size, gap, index, best);
	for (uint64_t at = gpc_round_up(start, GPC_PAGE_BYTES); at + size <= end;
		at += GPC_PAGE_BYTES) {
		uint32_t page = first_page(at);

		if (pages->is_mapped[page] && (page == 0 || !pages->is_mapped[page - 1]))
			try_place(pages, at, size, gap, index, best);
	}
}

/* Behind the last block only mapped pages matter, and as much as one request more. */
static uint64_t end_of_use(const struct gpc_pages *pages, uint64_t last, uint64_t size)
{
	uint64_t all = pages->n_pages * GPC_PAGE_BYTES;
	uint32_t page = pages->n_pages;
	uint64_t end;

	while (page > first_page(last) && !pages->is_mapped[page - 1])
		page--;
	end = page * GPC_PAGE_BYTES;
	end = (end > last ? end : last) + size;
	return end < all ? end : all;
}

static struct place find_place(const struct gpc_pages *pages, uint64_t size)
{
	struct place best = { .is_found = false };
	uint64_t start = 0;

	for (uint32_t i = 0; i < pages->n_blocks; i++) {
		try_gap(pages, start, pages->blocks[i].offset, size, i, &best);
		start = pages->blocks[i].offset + pages->blocks[i].size;
	}
	try_gap(pages, start, end_of_use(pages, start, size), size, pages->n_blocks, &best);
	return best;
}

/* Unmapping waits for nobody by itself: what ran before the last free has to be over. */
static void settle(struct gpc_pages *pages)
{
	struct gpc_driver *driver = pages->machine->driver;

	if (pages->is_unsettled)
		(void)!driver->ops->context_sync(driver);
	pages->is_unsettled = false;
}

/* The highest idle page outside of [first, end); n_pages: there is none. */
static uint32_t find_idle(const struct gpc_pages *pages, uint32_t first, uint32_t end)
{
	uint32_t page = pages->n_pages;

	while (page-- > 0)
		if (pages->is_mapped[page] && !pages->n_on[page] && (page < first || page >= end))
			return page;
	return pages->n_pages;
}

/* A handle for this page: an idle one of another, else a new one. */
static enum gpc_status map_page(
	struct gpc_pages *pages, uint32_t page, uint32_t first, uint32_t end)
{
	uint32_t idle = pages->n_idle ? find_idle(pages, first, end) : pages->n_pages;
	enum gpc_status st = GPC_OK;

	if (idle < pages->n_pages) {
		settle(pages);
		gpc_machine_move_handle(pages->machine);
		pages->is_mapped[idle] = false;
		pages->n_moves++;
	} else {
		st = gpc_machine_create_handle(pages->machine, GPC_PAGE_BYTES);
		pages->n_mapped += !st;
		pages->n_idle += !st;
	}
	pages->is_mapped[page] |= !st;
	return st;
}

static bool has_slot(struct gpc_pages *pages)
{
	uint32_t max = pages->max_blocks ? 2 * pages->max_blocks : FEW_BLOCKS;
	void *blocks;

	if (pages->n_blocks < pages->max_blocks)
		return true;
	blocks = realloc(pages->blocks, max * sizeof *pages->blocks);
	if (!blocks)
		return false;
	pages->blocks = blocks;
	pages->max_blocks = max;
	return true;
}

/* Counts a block that comes (1) or goes (-1) on its pages. */
static void count_on(struct gpc_pages *pages, const struct gpc_pages_block *block, int by)
{
	uint32_t end = end_page(block->offset, block->size);

	for (uint32_t page = first_page(block->offset); page < end; page++) {
		pages->n_idle -= pages->n_on[page] == 0;
		pages->n_on[page] += (uint32_t)by;
		pages->n_idle += pages->n_on[page] == 0;
	}
}

enum gpc_status gpc_pages_alloc(struct gpc_pages *pages, uint64_t size, uint64_t *ret_address)
{
	struct place place = find_place(pages, size);
	struct gpc_pages_block block = { place.offset, size };
	uint32_t first = first_page(place.offset);
	uint32_t end = end_page(place.offset, size);

	if (!place.is_found)
		return GPC_DEVICE_NO_MEMORY;
	if (!has_slot(pages))
		return GPC_NO_METADATA;
	for (uint32_t page = first; page < end; page++) {
		enum gpc_status st = GPC_OK;

		if (!pages->is_mapped[page])
			st = map_page(pages, page, first, end);
		/* What was mapped before is idle here as well as there. */
		if (st)
			return st;
	}
	memmove(&pages->blocks[place.index + 1], &pages->blocks[place.index],
		(pages->n_blocks - place.index) * sizeof *pages->blocks);
	pages->blocks[place.index] = block;
	pages->n_blocks++;
	count_on(pages, &block, 1);
	*ret_address = pages->address + place.offset;
	return GPC_OK;
}

enum gpc_status gpc_pages_free(struct gpc_pages *pages, uint64_t address)
{
	uint64_t offset = address - pages->address;
	size_t at = GPC_ARRAY_COUNT(pages->n_blocks, i, pages->blocks[i].offset < offset);

	if (at == pages->n_blocks || pages->blocks[at].offset != offset)
		return GPC_NOT_FOUND;
	count_on(pages, &pages->blocks[at], -1);
	pages->n_blocks--;
	memmove(&pages->blocks[at], &pages->blocks[at + 1],
		(pages->n_blocks - at) * sizeof *pages->blocks);
	return GPC_OK;
}

uint64_t gpc_pages_trim(struct gpc_pages *pages, uint64_t wanted)
{
	uint64_t went = 0;

	for (; went < wanted && pages->n_idle; went += GPC_PAGE_BYTES) {
		settle(pages);
		pages->is_mapped[find_idle(pages, 0, 0)] = false;
		gpc_machine_release_handle(pages->machine, GPC_PAGE_BYTES);
		pages->n_mapped--;
		pages->n_idle--;
	}
	return went;
}

const char *gpc_pages_check(const struct gpc_pages *pages)
{
	uint32_t n_mapped = 0;
	uint32_t n_idle = 0;

	for (uint32_t page = 0; page < pages->n_pages; page++) {
		n_mapped += pages->is_mapped[page];
		n_idle += pages->is_mapped[page] && !pages->n_on[page];
		if (pages->n_on[page] && !pages->is_mapped[page])
			return "a page that a block lies on is mapped";
	}
	for (uint32_t i = 1; i < pages->n_blocks; i++)
		if (pages->blocks[i - 1].offset + pages->blocks[i - 1].size >
			pages->blocks[i].offset)
			return "blocks do not overlap";
	return n_mapped == pages->n_mapped && n_idle == pages->n_idle ? NULL : "pages are counted";
}
