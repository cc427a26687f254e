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
#include "why/torch_facts.h"

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
	const struct gpc_device *device = ((const struct gpc_holder_names *)self)->device;
	const struct gpc_record *record = &gpc_runtime.record;

	for (uint32_t i = 0; i < gpc_record_block_end(record); i++) {
		const struct gpucache_block *block = &record->blocks[i];

		if (is_live_there(block, device, stack))
			return !is_elsewhere(__atomic_load_n(&block->kind, __ATOMIC_RELAXED));
	}
	return true;
}

static void describe(void *self, uint32_t stack, bool has_via, char *buf, size_t size)
{
	struct gpc_text text = gpc_text_init(buf, size);

	(void)gpc_naming_describe(
		((const struct gpc_holder_names *)self)->naming, stack, has_via, &text);
}

static void tell_history(void *self, uint32_t stack, uint64_t *ret_oldest_ns, uint64_t *ret_growth)
{
	const struct gpc_device *device = ((const struct gpc_holder_names *)self)->device;
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

static const struct gpc_stack_frames *find_frames(void *self, uint32_t stack)
{
	return gpc_naming_find(((const struct gpc_holder_names *)self)->naming, stack);
}

static bool read_site(void *self, uint64_t i, struct gpucache_site *ret_site)
{
	const struct gpucache_site *site = &gpc_runtime.record.sites[i];

	(void)self;
	*ret_site = (struct gpucache_site){
		.live_bytes = __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED),
		.live_blocks = __atomic_load_n(&site->live_blocks, __ATOMIC_RELAXED),
		.total_bytes = __atomic_load_n(&site->total_bytes, __ATOMIC_RELAXED),
		.total_blocks = __atomic_load_n(&site->total_blocks, __ATOMIC_RELAXED),
		.first_ns = __atomic_load_n(&site->first_ns, __ATOMIC_RELAXED),
		.last_ns = __atomic_load_n(&site->last_ns, __ATOMIC_RELAXED),
		.stack = __atomic_load_n(&site->stack, __ATOMIC_RELAXED),
		.device = __atomic_load_n(&site->device, __ATOMIC_RELAXED),
		.flags = __atomic_load_n(&site->flags, __ATOMIC_RELAXED),
	};
	return ret_site->stack;
}

static bool find_oom(void *self, uint64_t number, struct gpucache_oom *ret_oom)
{
	(void)self;
	return gpc_record_oom_read(&gpc_runtime.record, number, ret_oom);
}

struct gpc_holder_names gpc_holder_names_open(
	struct gpc_device *device, const struct gpucache_oom *oom)
{
	struct gpc_holder_names names = { device,
		gpc_runtime.has_stacks ? gpc_naming_open(&gpc_runtime.stacks) : NULL };

	if (!oom || !names.naming)
		return names;
	gpc_naming_expect(names.naming, oom->stack);
	gpc_naming_expect(names.naming, oom->growth_stack);
	for (uint32_t i = 0; i < oom->n_holders; i++)
		gpc_naming_expect(names.naming, oom->holders[i].stack);
	/* The facts about PyTorch's memory are found in all call sites (why/torch_facts.h). */
	for (uint32_t i = 0; gpc_is_of_torch(oom) && i < gpc_record_site_end(&gpc_runtime.record);
		i++)
		gpc_naming_expect(names.naming,
			__atomic_load_n(&gpc_runtime.record.sites[i].stack, __ATOMIC_RELAXED));
	return names;
}

void gpc_holder_names_close(struct gpc_holder_names *names)
{
	gpc_naming_close(names->naming);
}

struct gpc_describer gpc_holder_describer(struct gpc_holder_names *names)
{
	return (struct gpc_describer){
		.self = names, .describe = describe, .history = tell_history, .can_free = can_free
	};
}

struct gpc_evidence gpc_holder_evidence(struct gpc_holder_names *names)
{
	return (struct gpc_evidence){
		.self = names,
		.frames = find_frames,
		.read_site = read_site,
		.n_sites = gpc_record_site_end(&gpc_runtime.record),
		.find_oom = find_oom,
	};
}

void gpc_holders_print(struct gpc_device *device, uint64_t total)
{
	struct gpc_holder_names names = gpc_holder_names_open(device, NULL);
	const struct gpc_describer describer = gpc_holder_describer(&names);
	struct gpucache_holder holders[GPUCACHE_MAX_OOM_HOLDERS];
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];
	GPC_TEXT(text, (MOST_ROWS + 2) * (GPC_HOLDER_SITE_SIZE + 60));
	uint32_t n_sites;
	uint64_t rest;
	uint32_t n = gpc_record_top_holders(&gpc_runtime.record, device->ordinal, holders,
		GPUCACHE_MAX_OOM_HOLDERS, &n_sites, &rest);

	n = gpc_holder_rows_fill(rows, holders, n, &describer, GPC_HOLDER_SITE_SIZE);
	gpc_holder_rows_write(&text, rows, n, MOST_ROWS, total, gpc_clock_monotonic_ns());
	gpc_holder_names_close(&names);
	if (n)
		gpc_log_block(text.buf, text.len);
}
