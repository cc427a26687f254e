/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the holders of a device's memory while the process runs: call site, age of the oldest block, growth.  Reads
 * the recording's tables without a lock, so a block that changes meanwhile may or may not count.
 */
#include "runtime/rescue/holders.h"

#include "base/clock.h"
#include "base/log.h"
#include "oom/holder_rows.h"
#include "record/store.h"
#include "runtime/process/state.h"

#define MOST_ROWS 8

static bool is_live_there(
	const struct gpucache_block *block, const struct gpc_device *device, uint32_t stack)
{
	return __atomic_load_n(&block->device, __ATOMIC_RELAXED) == device->ordinal &&
	       __atomic_load_n(&block->stack, __ATOMIC_RELAXED) == stack &&
	       __atomic_load_n(&block->state, __ATOMIC_RELAXED) == GPUCACHE_BLOCK_LIVE;
}

static bool is_elsewhere(uint8_t kind)
{
	return kind == GPUCACHE_KIND_MANAGED || kind == GPUCACHE_KIND_SPILLED;
}

/* Managed memory may be elsewhere.  One block of a site tells the kind of all. */
static bool can_free(void *self, uint32_t stack)
{
	const struct gpc_record *record = &gpc_runtime.record;

	for (uint32_t i = 0; i < gpc_record_block_end(record); i++) {
		const struct gpucache_block *block = &record->blocks[i];

		if (is_live_there(block, self, stack))
			return !is_elsewhere(__atomic_load_n(&block->kind, __ATOMIC_RELAXED));
	}
	return true;
}

static void describe(void *self, uint32_t stack, char *buf, size_t size)
{
	(void)self;
	if (gpc_runtime.has_stacks)
		(void)gpc_stack_describe(&gpc_runtime.stacks, stack, buf, size);
}

static void tell_history(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth)
{
	const struct gpc_device *device = self;
	const struct gpc_record *record = &gpc_runtime.record;
	uint64_t oldest = 0;

	for (uint32_t i = 0; i < gpc_record_block_end(record); i++) {
		const struct gpucache_block *block = &record->blocks[i];
		uint64_t time_ns = __atomic_load_n(&block->time_ns, __ATOMIC_RELAXED);

		if (is_live_there(block, device, stack) && (!oldest || time_ns < oldest))
			oldest = time_ns;
	}
	*ret_oldest_ns = oldest;
	*ret_growth = gpc_record_growth_of(&gpc_runtime.record, device->ordinal, stack);
}

struct gpc_describer gpc_holder_describer(struct gpc_device *device)
{
	return (struct gpc_describer){
		.self = device, .describe = describe, .history = tell_history, .can_free = can_free
	};
}

void gpc_holders_print(struct gpc_device *device, uint64_t total)
{
	const struct gpc_describer describer = gpc_holder_describer(device);
	struct gpucache_holder holders[GPUCACHE_MAX_OOM_HOLDERS];
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];
	GPC_TEXT(text, (MOST_ROWS + 2) * (GPC_HOLDER_SITE_SIZE + 60));
	uint32_t n_sites;
	uint64_t rest;
	uint32_t n = gpc_record_top_holders(&gpc_runtime.record, device->ordinal, holders,
		GPUCACHE_MAX_OOM_HOLDERS, &n_sites, &rest);

	n = gpc_holder_rows_fill(rows, holders, n, &describer, GPC_HOLDER_SITE_SIZE);
	gpc_holder_rows_write(&text, rows, n, MOST_ROWS, total, gpc_clock_monotonic_ns());
	if (n)
		gpc_log_block(text.buf, text.len);
}
