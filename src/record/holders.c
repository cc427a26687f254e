/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SITES: one record per pair of stack and device that ever held memory, in order of appearance, so that a scan reads
 * only records in use.  A private table [device][stack] maps pairs to records; only its touched pages take memory.
 *
 * A scan of SITES finds the stacks that hold most, for each new peak and at a failure.  A scan of BLOCKS finds the tags
 * that hold most, at a failure only.
 */
#include "base/metamem.h"
#include "model/balance.h"
#include "model/held.h"
#include "record/store.h"

/* A peak is recorded if it exceeds the last one by 1/PEAK_PART or by PEAK_STEP, whichever is less. */
#define PEAK_PART 100
#define PEAK_STEP (64 * GPC_MIB)

uint32_t gpc_record_take_site(struct gpc_record *rec, uint32_t device, uint32_t stack)
{
	uint32_t *entry = &rec->site_of[(size_t)device * rec->n_sites + stack];
	uint32_t number;
	uint32_t end;

	gpc_lock_take(&rec->lock);
	number = *entry;
	end = gpc_record_site_end(rec);
	if (number == 0 && end < rec->n_sites) {
		number = end;
		rec->sites[number].stack = stack;
		rec->sites[number].device = (uint16_t)device;
		gpc_record_mark_page(rec, &rec->sites[number].stack);
		atomic_store_explicit(&rec->site_end, end + 1, memory_order_release);
	} else if (number == 0) {
		number = GPC_RECORD_NO_SITE;
		rec->header->dropped_sites++;
	}
	__atomic_store_n(entry, number, __ATOMIC_RELEASE);
	gpc_lock_release(&rec->lock);
	return number;
}

struct ranking {
	struct gpucache_holder *holders;
	uint32_t max;
	uint32_t n;
	uint32_t n_ranked; /* all holders, also those without a place in holders[] */
	uint64_t bytes;    /* of holders[] */
};

/* Inserts a holder into holders[], which is sorted, largest first.  For tags `stack` is the tag. */
static void rank(struct ranking *ranking, uint32_t stack, uint64_t bytes, uint64_t n_blocks)
{
	uint32_t at = ranking->n;

	ranking->n_ranked++;
	if (at == ranking->max) {
		if (at == 0 || ranking->holders[at - 1].bytes >= bytes)
			return;
		at--;
		ranking->bytes -= ranking->holders[at].bytes;
	} else {
		ranking->n++;
	}
	for (; at > 0 && ranking->holders[at - 1].bytes < bytes; at--)
		ranking->holders[at] = ranking->holders[at - 1];
	ranking->holders[at] = (struct gpucache_holder){ .stack = stack,
		.n_blocks = (uint32_t)gpc_smaller(n_blocks, UINT32_MAX),
		.bytes = bytes };
	ranking->bytes += bytes;
}

/* The bytes on a device by kind, and returns those that the program holds, of blocks without a stack, too. */
static uint64_t sum_kinds(
	const struct gpc_record *rec, uint32_t device, uint64_t ret_kind_bytes[GPUCACHE_MAX_KINDS])
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < rec->n_counters; i++) {
		const struct gpucache_counters *counters = &rec->counters[i];

		if (__atomic_load_n(&counters->context, __ATOMIC_ACQUIRE) == 0 ||
			__atomic_load_n(&counters->device, __ATOMIC_RELAXED) != (int32_t)device)
			continue;
		total += __atomic_load_n(&counters->requested_bytes, __ATOMIC_RELAXED);
		total += __atomic_load_n(&counters->direct_bytes, __ATOMIC_RELAXED);
		for (unsigned kind = 0; kind < GPUCACHE_KIND_COUNT; kind++)
			ret_kind_bytes[kind] +=
				__atomic_load_n(&counters->kind_bytes[kind], __ATOMIC_RELAXED);
	}
	return gpc_bytes_less(total, gpc_implicit_bytes(ret_kind_bytes));
}

uint32_t gpc_record_top_holders(struct gpc_record *rec, uint32_t device,
	struct gpucache_holder *holders, uint32_t max, uint32_t *ret_n_sites,
	uint64_t *ret_rest_bytes)
{
	struct ranking ranking = { .holders = holders, .max = max };
	uint32_t end = gpc_record_site_end(rec);
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS] = { 0 };
	uint64_t total = rec->base ? sum_kinds(rec, device, kind_bytes) : 0;

	for (uint32_t i = 1; i < end; i++) {
		const struct gpucache_site *site = &rec->sites[i];
		uint64_t bytes = __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED);

		/* A sum above INT64_MAX is a negative one that has wrapped around. */
		if (site->device != device || bytes == 0 || bytes > INT64_MAX)
			continue;
		rank(&ranking, site->stack, bytes,
			__atomic_load_n(&site->live_blocks, __ATOMIC_RELAXED));
	}
	*ret_n_sites = ranking.n_ranked;
	*ret_rest_bytes = gpc_bytes_less(total, ranking.bytes);
	return ranking.n;
}

/* Sites stand in the order in which they began: so those that are not much older than one end where a younger one's do, or before. */
struct gpc_growth gpc_record_growth(
	struct gpc_record *rec, uint32_t device, struct gpc_growth_request request)
{
	const struct gpc_window_clock *clock = &rec->site_locks[device].clock;
	uint32_t end = gpc_record_site_end(rec);
	struct gpc_growth growth = { 0 };
	uint64_t n_freed = 0;
	uint32_t older = end;

	for (uint32_t i = end; --i > 0;) {
		const struct gpucache_site *site = &rec->sites[i];

		if (site->device != device)
			continue;
		gpc_lock_take(&rec->site_locks[device].lock);
		for (; older > 1; older--) {
			const struct gpucache_site *other = &rec->sites[older - 1];

			if (other->device != device)
				continue;
			if (gpc_growth_is_older(&rec->windows[older - 1], &rec->windows[i], clock))
				break;
			n_freed += gpc_bytes_less(other->total_blocks, other->live_blocks);
		}
		gpc_windows_reach(&rec->windows[i], clock);
		gpc_growth_consider(&growth, site, &rec->windows[i], clock, request, n_freed);
		gpc_lock_release(&rec->site_locks[device].lock);
	}
	return growth;
}

/* The sites go on between two of them: so the base is what each stayed at by itself. */
uint64_t gpc_record_usual(struct gpc_record *rec, uint32_t device, uint64_t *ret_base)
{
	const struct gpc_window_clock *clock = &rec->site_locks[device].clock;
	struct gpc_lock *lock = &rec->site_locks[device].lock;
	uint32_t end = gpc_record_site_end(rec);
	uint64_t base = 0;
	uint64_t bytes;

	gpc_lock_take(lock);
	bytes = gpc_window_clock_usual(clock);
	gpc_lock_release(lock);
	*ret_base = bytes;
	if (bytes == UINT64_MAX)
		return bytes;
	for (uint32_t i = 1; i < end; i++) {
		if (rec->sites[i].device != device)
			continue;
		gpc_lock_take(lock);
		gpc_windows_reach(&rec->windows[i], clock);
		base = gpc_bytes_add(base,
			gpc_windows_base(&rec->windows[i], gpc_window_clock_usual_end(clock)));
		gpc_lock_release(lock);
	}
	*ret_base = gpc_smaller(base, bytes);
	return bytes;
}

uint64_t gpc_record_growth_of(struct gpc_record *rec, uint32_t device, uint32_t stack)
{
	struct gpucache_site *site = gpc_record_find_site(rec, device, stack);
	struct gpc_windows *windows;
	uint64_t bytes;

	if (!site)
		return 0;
	windows = gpc_record_windows_of(rec, site);
	gpc_lock_take(&rec->site_locks[device].lock);
	gpc_windows_reach(windows, &rec->site_locks[device].clock);
	bytes = gpc_growth_lately(site, windows);
	gpc_lock_release(&rec->site_locks[device].lock);
	return bytes;
}

uint32_t gpc_record_top_tags(const struct gpc_record *rec, uint32_t device, uint32_t end,
	struct gpucache_tag_holder *holders, uint32_t max, uint64_t *ret_rest_bytes)
{
	struct gpucache_holder largest[GPUCACHE_MAX_OOM_TAGS];
	struct ranking ranking = { .holders = largest,
		.max = (uint32_t)gpc_smaller(max, GPUCACHE_MAX_OOM_TAGS) };
	size_t size = end * sizeof(struct gpucache_tag_holder);
	struct gpucache_tag_holder *all = end > 0 ? gpc_metamem_map(size) : NULL;
	struct gpucache_block block;
	uint64_t total = 0;

	*ret_rest_bytes = 0;
	if (!all)
		return 0;
	for (uint32_t i = 0; i < gpc_record_block_end(rec); i++) {
		if (!gpc_held_read(&rec->blocks[i], device, &block) || block.tag >= end)
			continue;
		all[block.tag].n_blocks++;
		all[block.tag].bytes += block.requested;
		total += block.requested;
	}
	for (uint32_t tag = 0; tag < end; tag++)
		if (all[tag].n_blocks)
			rank(&ranking, tag, all[tag].bytes, all[tag].n_blocks);
	for (uint32_t i = 0; i < ranking.n; i++)
		holders[i] = (struct gpucache_tag_holder){ .tag = largest[i].stack,
			.n_blocks = largest[i].n_blocks,
			.bytes = largest[i].bytes };
	gpc_metamem_unmap(all, size);
	*ret_rest_bytes = total - ranking.bytes;
	return ranking.n;
}

static uint64_t next_after(uint64_t live)
{
	return live + gpc_smaller(live / PEAK_PART + 1, PEAK_STEP);
}

void gpc_record_peak_take(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t reserved)
{
	struct gpucache_peak peak = { .device = (int32_t)device,
		.time_ns = now_ns,
		.requested_bytes = requested,
		.live_bytes = live,
		.reserved_bytes = reserved };
	struct gpucache_peak *slots;

	if (!rec->base || device >= rec->n_devices || live == 0)
		return;
	slots = (void *)(rec->base + rec->regions[GPUCACHE_REGION_PEAKS]->offset);
	slots += (size_t)2 * device;
	gpc_lock_take(&rec->lock);
	/* While this thread waited for the lock, another one may have recorded a higher peak. */
	if (live >= atomic_load_explicit(&rec->peak_next[device], memory_order_relaxed)) {
		peak.number = ++rec->peak_number;
		peak.n_holders = gpc_record_top_holders(rec, device, peak.holders,
			GPUCACHE_MAX_HOLDERS, &peak.n_sites, &peak.rest_bytes);
		(void)sum_kinds(rec, device, peak.kind_bytes);
		slots += slots[0].number > slots[1].number;
		gpc_record_unmark(rec, slots, sizeof *slots);
		gpc_record_store(slots, &peak, sizeof peak);
		gpc_record_mark(rec, slots, sizeof *slots);
		atomic_store_explicit(
			&rec->peak_next[device], next_after(live), memory_order_relaxed);
	}
	gpc_lock_release(&rec->lock);
}
