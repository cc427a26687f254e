/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes each quantity of verdict.h once.  Any input may be unknown; what depends on it is then unknown, or 0 if the
 * struct says so.
 */
#include "oom/verdict_view.h"

#include "base/bytes.h"
#include "model/balance.h"
#include "model/held.h"

struct gpc_verdict_facts gpc_verdict_facts_unknown(void)
{
	return (struct gpc_verdict_facts){
		.free_before = GPUCACHE_UNKNOWN,
		.free_after = GPUCACHE_UNKNOWN,
		.largest_usable = GPUCACHE_UNKNOWN,
		.largest_other_pool = GPUCACHE_UNKNOWN,
		.largest_pending = GPUCACHE_UNKNOWN,
		.usual_request = GPUCACHE_UNKNOWN,
		.usual_live = GPUCACHE_UNKNOWN,
		.plain_live = GPUCACHE_UNKNOWN,
		.caching = true,
	};
}

/* What would be free if every block of our segments were the driver's own. */
static uint64_t plain_room(const struct gpc_verdict_view *v)
{
	const struct gpucache_balance *sheet = &v->oom->balance;
	uint64_t ours = gpc_bytes_add(gpc_bytes_add(sheet->requested, sheet->rounding),
		gpc_bytes_add(sheet->pending, sheet->cached));

	if (!gpc_is_known(v->driver) || !gpc_is_known(v->facts->plain_live))
		return GPUCACHE_UNKNOWN;
	return gpc_bytes_less(gpc_bytes_add(v->driver, ours), v->facts->plain_live);
}

/*
 * What other processes hold.  The balance counts all managed memory as resident, and cuts the others' line if the sum
 * exceeds the total; so if there is managed memory, NVML's own list is used if its sum is larger.
 */
static uint64_t others_there(const struct gpc_verdict_view *v)
{
	uint64_t others = v->oom->balance.other_processes;
	uint64_t listed = 0;

	for (uint32_t i = 0; i < v->oom->n_neighbours; i++)
		if (gpc_is_known(v->oom->neighbours[i].bytes))
			listed = gpc_bytes_add(listed, v->oom->neighbours[i].bytes);
	return gpc_is_known(others) && v->oom->kind_bytes[GPUCACHE_KIND_MANAGED] && listed > others
		       ? listed
		       : others;
}

/* An upper bound of resident managed memory: what nothing else explains. */
static uint64_t managed_there(const struct gpc_verdict_view *v)
{
	uint64_t managed = v->oom->kind_bytes[GPUCACHE_KIND_MANAGED];
	uint64_t total = v->oom->balance.device_total;
	uint64_t rest;

	if (!gpc_is_known(total) || !gpc_is_known(v->driver))
		return managed;
	rest = gpc_bytes_less(gpc_bytes_less(total, v->driver), gpc_bytes_less(v->taken, managed));
	return gpc_smaller(managed, gpc_bytes_less(rest, gpc_is_known(v->others) ? v->others : 0));
}

/* The bytes of all contexts but one: the program needs only one context. */
static uint64_t spare_contexts(const struct gpc_verdict_view *v)
{
	uint64_t bytes = v->oom->kind_bytes[GPUCACHE_KIND_CONTEXT];
	uint32_t n = v->facts->n_contexts;

	return n > 1 ? bytes / n * (n - 1) : 0;
}

/* The bytes needed.  2^64 - 1 means "unknown", so a request of that size counts as one byte less. */
static uint64_t needed(const struct gpucache_oom *oom)
{
	uint64_t need = oom->rounded > oom->requested ? oom->rounded : oom->requested;

	return gpc_is_known(need) ? need : need - 1;
}

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

void gpc_verdict_view(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_verdict_view *ret_view)
{
	const struct gpucache_balance *sheet = &oom->balance;
	struct gpc_verdict_view view = { .oom = oom, .facts = facts, .need = needed(oom) };
	uint64_t piece = facts->largest_usable;
	uint64_t best;

	if (!gpc_is_known(piece))
		piece = sheet->cached_largest;
	view.piece_known = gpc_is_known(piece);
	view.piece = view.piece_known ? piece : 0;
	view.driver = gpc_is_known(sheet->device_free) ? sheet->device_free : facts->free_after;
	view.taken = gpc_balance_taken(sheet);
	view.held = gpc_bytes_add(gpc_bytes_add(sheet->requested, sheet->rounding), sheet->direct);
	view.sum = gpc_bytes_add(gpc_bytes_add(view.driver, sheet->cached), sheet->pending);
	view.gone = gpc_is_below(view.sum, view.need);
	view.charged = gpc_balance_charged(sheet, oom->kind_bytes);
	view.step = oom->kind == GPUCACHE_KIND_DEVICE ? round_up(view.need) : view.need;
	view.limited = oom->limit != 0 && gpc_bytes_add(view.charged, view.step) > oom->limit;
	view.room = view.driver;
	/* PyTorch refused by a limit of its own, and considered neither the device nor our cache. */
	if (oom->kind == GPUCACHE_KIND_TENSOR) {
		view.limited = true;
		view.room = 0;
		view.piece = 0;
		view.piece_known = false;
	} else if (view.limited)
		view.room = gpc_smaller(view.room, gpc_bytes_less(oom->limit, view.charged));
	best = gpc_is_known(view.room) && view.room > view.piece ? view.room : view.piece;
	view.shortage = gpc_is_known(view.room) ? gpc_bytes_less(view.need, best) : 0;
	/* Without numbers from NVML, all unattributed memory may be the others'. */
	view.others = others_there(&view);
	view.most_other = gpc_is_known(view.others) ? view.others : sheet->unattributed;
	view.plain = plain_room(&view);
	view.wasted = gpc_is_known(view.plain) ? gpc_bytes_less(view.plain, best) : 0;
	view.managed = managed_there(&view);
	view.contexts = spare_contexts(&view);
	view.scarce = view.gone ||
		      (gpc_is_below(view.plain, view.need) && gpc_is_known(sheet->device_total) &&
			      sheet->cached < sheet->device_total / GPC_WASTED_PART);
	*ret_view = view;
}
