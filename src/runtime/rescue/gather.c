/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the recording's tables without a lock, so that what changes meanwhile may or may not count. */
#include "runtime/rescue/gather.h"

#include <string.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "model/balance.h"
#include "model/counters.h"
#include "model/held.h"
#include "oom/balance.h"
#include "oom/plain.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/arrays.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/pools.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/state.h"
#include "runtime/process/tags.h"
#include "runtime/rescue/look.h"
#include "runtime/rescue/spill.h"
#include "why/why.h"

static struct gpc_moment moment_of(const struct gpc_context *context)
{
	struct gpc_device *device = context->device;
	const struct gpucache_torch *tensors = gpc_tensors_sums(device);
	struct gpc_moment moment = {
		.context = context,
		.n_mallocs = GPC_DEVICE_SUM(device, n_malloc),
		.n_frees = GPC_DEVICE_SUM(device, n_free),
		.n_driver_mallocs = GPC_DEVICE_SUM(device, n_driver_malloc),
		.n_driver_frees = GPC_DEVICE_SUM(device, n_driver_free),
		.direct_bytes = GPC_DEVICE_SUM(device, direct_bytes),
		.host_bytes = GPC_DEVICE_SUM(device, host_bytes),
		.pending_bytes = GPC_DEVICE_SUM(device, pending_bytes),
		.n_tensors =
			gpc_counter_get(&tensors->n_malloc) + gpc_counter_get(&tensors->n_free),
		.is_capturing = gpc_captures_is_any_open(&gpc_runtime.heap.captures),
	};

	gpc_lock_take(&gpc_runtime.lock);
	moment.available = device->known.free_bytes;
	gpc_lock_release(&gpc_runtime.lock);
	return moment;
}

static void fill_growth(struct gpucache_oom *oom, const struct gpc_device *device,
	struct gpc_growth_request request)
{
	struct gpc_record *record = &gpc_runtime.record;
	struct gpc_growth growth = gpc_record_growth(record, device->ordinal, request);

	oom->growth_stack = growth.most.stack;
	oom->growth_bytes = record->sites ? growth.most.bytes : GPUCACHE_UNKNOWN;
	oom->growth_others = growth.others_bytes;
	oom->growth_held = growth.most.held;
	oom->growth_blocks = growth.most.n_blocks;
	oom->growth_total = growth.most.total;
	oom->grows_how = growth.most.how;
	oom->is_varied = growth.most.is_varied;
	oom->n_free = growth.most.n_frees;
	oom->usual_live = gpc_record_usual(record, device->ordinal, &oom->usual_base);
}

static bool has_captured(const struct gpc_device *device)
{
	const struct gpc_record *record = &gpc_runtime.record;
	const struct gpucache_site *sites = record->sites;

	for (uint32_t i = 1; sites && i < gpc_record_site_end(record); i++)
		if (__atomic_load_n(&sites[i].flags, __ATOMIC_RELAXED) & GPUCACHE_SITE_CAPTURED &&
			__atomic_load_n(&sites[i].device, __ATOMIC_RELAXED) == device->ordinal)
			return true;
	return false;
}

/* Whole segments of PyTorch's cache without a tensor; unknown if blocks are without a record, which may be tensors. */
static void fill_idle(struct gpucache_oom *oom, const struct gpc_device *device)
{
	const struct gpc_record *record = &gpc_runtime.record;
	uint32_t segment;

	oom->idle_bytes = gpc_plain_idle(
		record->blocks, gpc_record_block_end(record), device->ordinal, &segment);
	oom->idle_stack = 0;
	if (segment < record->n_segments)
		oom->idle_stack =
			__atomic_load_n(&record->segments[segment].stack, __ATOMIC_RELAXED);
	if (oom->idle_bytes != GPUCACHE_UNKNOWN && record->header &&
		!__atomic_load_n(&record->header->dropped_blocks, __ATOMIC_RELAXED))
		oom->setup |= GPUCACHE_OOM_IDLE;
	if (has_captured(device))
		oom->setup |= GPUCACHE_OOM_GRAPHS;
}

/* What the recording's blocks tell: contexts, and what the driver would use for the same blocks. */
static void fill_blocks(struct gpucache_oom *oom, const struct gpc_device *device)
{
	const struct gpc_record *record = &gpc_runtime.record;
	struct gpucache_balance *sheet = &oom->balance;
	uint64_t tails;

	oom->plain_live = gpc_plain_live(record->blocks, gpc_record_block_end(record),
		device->ordinal, oom->balance.requested);
	oom->page_waste = gpc_plain_waste(
		record->blocks, gpc_record_block_end(record), device->ordinal, &oom->page_blocks);
	fill_idle(oom, device);
	/* The driver counts them as in use by this process, and not for any block. */
	tails = gpc_plain_tails(record->blocks, gpc_record_block_end(record), device->ordinal);
	if (sheet->process_outside != GPUCACHE_UNKNOWN && tails <= sheet->process_outside) {
		sheet->process_outside -= tails;
		sheet->rounding += tails;
		oom->plain_live = gpc_bytes_add(oom->plain_live, tails);
	}
	oom->n_contexts = gpc_contexts_count(device);
}

static void keep_neighbours(struct gpc_device *device, const struct gpc_neighbours *neighbours)
{
	if (neighbours->index >= 0)
		device->known.physical = (uint64_t)neighbours->index + 1;
	if (neighbours->process_bytes == GPUCACHE_UNKNOWN ||
		neighbours->others_bytes == GPUCACHE_UNKNOWN)
		return;
	device->known.nvml = 1;
	device->known.n_other = neighbours->n_other;
	device->known.process_bytes = neighbours->process_bytes;
	device->known.others_bytes = neighbours->others_bytes;
	device->known.driver_bytes = neighbours->driver_bytes;
}

/* What was taken at once by a site that still holds as much. */
static void fill_taken(struct gpucache_oom *oom, const struct gpc_device *device)
{
	const struct gpucache_site *site = device->taken_bytes
						   ? gpc_record_find_site(&gpc_runtime.record,
							     device->ordinal, device->taken_stack)
						   : NULL;
	bool is_live =
		site && __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED) >= device->taken_bytes;

	oom->taken_bytes = is_live ? device->taken_bytes : 0;
	oom->taken_stack = is_live ? device->taken_stack : 0;
}

static void find_all(struct gpc_context *context, struct gpc_gathered *gathered)
{
	struct gpc_device *device = context->device;
	struct gpc_record *record = &gpc_runtime.record;
	struct gpucache_oom *oom = &gathered->oom;
	struct gpc_look look;

	gpc_look_take(context, &look);
	oom->balance = look.balance;
	memcpy(oom->kind_bytes, look.kind_bytes, sizeof oom->kind_bytes);
	memcpy(oom->neighbours, look.neighbours.neighbours, sizeof oom->neighbours);
	oom->n_neighbours = look.neighbours.n_neighbours;
	oom->peak_requested = gpc_counter_get(&context->pool.counters->peak_requested_bytes);
	oom->n_holders = gpc_record_top_holders(record, device->ordinal, oom->holders,
		GPUCACHE_MAX_OOM_HOLDERS, &oom->n_sites, &oom->rest_bytes);
	oom->n_tags = gpc_record_top_tags(record, device->ordinal, gpc_runtime_tags_end(),
		oom->tags, GPUCACHE_MAX_OOM_TAGS, &oom->tag_rest_bytes);
	oom->free_after = look.device.device_free;
	oom->piece = look.piece;
	oom->returnable_bytes = look.returnable_bytes;
	oom->refused_frees = atomic_load(&device->n_refused_frees);
	oom->row_padding = atomic_load(&device->row_padding);
	oom->refused_free_stack = atomic_load(&device->refused_free_stack);
	oom->other_piece = look.other_piece;
	oom->largest_pending = look.largest_pending;
	oom->setup = look.setup;
	oom->idle_gpu = look.idle_gpu;
	oom->idle_free = look.idle_free;
	oom->host_bytes = GPC_DEVICE_SUM(device, host_bytes);
	oom->host_room = gpc_spill_offer(device);
	oom->n_dropped =
		record->header ? record->header->dropped_stacks + record->header->dropped_sites : 0;
	fill_blocks(oom, device);
	gpc_lock_take(&gpc_runtime.lock);
	keep_neighbours(device, &look.neighbours);
	fill_taken(oom, device);
	gpc_record_device(record, device->ordinal, &device->known);
	gpc_lock_release(&gpc_runtime.lock);
}

bool gpc_gather(struct gpc_context *context, struct gpc_gathered *gathered)
{
	struct gpc_moment moment;

	gpc_observe_device(context, gathered->moment.context == NULL);
	moment = moment_of(context);
	if (memcmp(&moment, &gathered->moment, sizeof moment) == 0)
		return true;
	/* What the driver has free is the last thing that evidence may be old in. */
	gpc_observe_device(context, true);
	*gathered = (struct gpc_gathered){ .moment = moment_of(context) };
	find_all(context, gathered);
	return false;
}

/* The driver does not tell the size of a context or module.  If the assumed size is free, it must need more. */
static void correct_size(struct gpc_rescue *rescue, uint64_t device_free)
{
	if (!gpc_kind_is_implicit(rescue->kind) || device_free == GPUCACHE_UNKNOWN ||
		device_free < rescue->size)
		return;
	rescue->size += device_free;
	rescue->rounded = rescue->size;
}

static void judge(struct gpucache_oom *oom)
{
	struct gpc_facts facts = gpc_facts_unknown();
	struct gpc_answer answer;

	gpc_facts_from_oom(&facts, oom);
	answer = gpc_why_then(&facts);
	oom->verdict = (uint8_t)answer.cause;
	oom->strength = (uint8_t)answer.strength;
	oom->also = answer.also;
	oom->short_by = facts.short_by == GPUCACHE_UNKNOWN ? 0 : facts.short_by;
}

void gpc_gather_request(
	struct gpc_gathered *gathered, struct gpc_rescue *rescue, const struct gpc_ladder *ladder)
{
	const struct gpc_device *device = rescue->context->device;
	const struct gpc_growth_request request = { rescue->request.mark, rescue->size };
	struct gpucache_oom *oom = &gathered->oom;

	if (memcmp(&request, &gathered->growth_with, sizeof request) != 0)
		fill_growth(oom, device, request);
	gathered->growth_with = request;
	correct_size(rescue, gathered->oom.free_after);
	oom->device = (int32_t)device->ordinal;
	oom->time_ns = rescue->request.now_ns;
	oom->requested = rescue->size;
	oom->rounded = rescue->rounded;
	oom->free_before = rescue->free_before;
	oom->limit = atomic_load(&device->budget.limit_bytes);
	oom->stack = rescue->request.mark;
	oom->thread = rescue->request.thread;
	oom->context = rescue->context->pool.context;
	oom->kind = (uint8_t)rescue->kind;
	oom->tag = gpc_thread_tag();
	oom->recovered = 0;
	oom->reported = 0;
	oom->pool_max = gpc_pools_max(rescue->pool, &oom->pool_used);
	oom->n_rungs = ladder->n_tried;
	memcpy(oom->rung_freed, ladder->freed, sizeof oom->rung_freed);
	oom->torch = gpc_tensors_have(device);
	oom->framework = gpc_counter_get(&gpc_tensors_sums(device)->framework);
	oom->program = gpc_arrays_program();
	if (rescue->kind == GPUCACHE_KIND_TENSOR)
		oom->torch.requested = rescue->size;
	judge(oom);
}

/*
 * An expandable segment asks for its pages one by one.  PyTorch has given back those that it got when it tells that one
 * failed: the request was for all of them.
 */
static void join_pages(struct gpucache_oom *oom, struct gpc_device *device)
{
	const uint64_t page = oom->requested;
	uint64_t *physical = &oom->kind_bytes[GPUCACHE_KIND_PHYSICAL];
	uint64_t back = gpc_bytes_less(
		*physical, GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_PHYSICAL]));

	if (oom->kind != GPUCACHE_KIND_PHYSICAL || page == 0 || oom->torch.requested <= page)
		return;
	oom->requested = gpc_bytes_add(oom->torch.requested, page - 1) / page * page;
	oom->rounded = oom->requested;
	back = gpc_smaller(back, oom->requested - page);
	*physical -= back;
	oom->balance.direct = gpc_bytes_less(oom->balance.direct, back);
	oom->balance.device_free = gpc_bytes_add(oom->balance.device_free, back);
	oom->rest_bytes = gpc_bytes_less(oom->rest_bytes, back);
}

void gpc_gather_torch(struct gpc_gathered *gathered, struct gpc_device *device,
	const struct gpucache_oom_torch *torch)
{
	struct gpucache_oom *oom = &gathered->oom;

	oom->torch = *torch;
	oom->program = gpc_arrays_program();
	join_pages(oom, device);
	judge(oom);
}
