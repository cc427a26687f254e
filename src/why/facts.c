/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of facts.def as data, and the facts of one record of a failure. */
#include <string.h>

#include "why/numbers.h"

const struct gpc_fact_row gpc_fact_rows[] = {
#define FACT(source, kind, name, meaning) \
	{ #name, meaning, offsetof(struct gpc_facts, name), GPC_FACT_##kind, GPC_FROM_##source },
#include "why/facts.def"
};
const size_t gpc_n_fact_rows = sizeof gpc_fact_rows / sizeof gpc_fact_rows[0];

static void forget(struct gpc_facts *facts, const struct gpc_fact_row *row)
{
	static const uint64_t unknown[] = {
		[GPC_FACT_BYTES] = GPUCACHE_UNKNOWN,
		[GPC_FACT_COUNT] = GPUCACHE_UNKNOWN,
		[GPC_FACT_FRACTION] = GPUCACHE_UNKNOWN,
		[GPC_FACT_TIME] = GPUCACHE_UNKNOWN,
		[GPC_FACT_SITE] = GPUCACHE_UNKNOWN,
		[GPC_FACT_PURPOSE] = GPUCACHE_UNKNOWN,
		[GPC_FACT_TRUTH] = GPC_NOT_KNOWN,
		[GPC_FACT_WORDS] = 0,
	};

	_Static_assert(sizeof facts->conf == sizeof unknown[0], "each fact is one word");
	memcpy((char *)facts + row->offset, &unknown[row->kind], sizeof unknown[0]);
}

struct gpc_facts gpc_facts_unknown(void)
{
	struct gpc_facts facts;

	for (size_t i = 0; i < gpc_n_fact_rows; i++)
		forget(&facts, &gpc_fact_rows[i]);
	return facts;
}

void gpc_facts_forget(struct gpc_facts *facts, enum gpc_fact_source source)
{
	for (size_t i = 0; i < gpc_n_fact_rows; i++)
		if (gpc_fact_rows[i].source == source)
			forget(facts, &gpc_fact_rows[i]);
}

bool gpc_fact_read(const struct gpc_facts *facts, const struct gpc_fact_row *row,
	uint64_t *ret_number, const char **ret_words)
{
	const char *at = (const char *)facts + row->offset;

	if (row->kind == GPC_FACT_WORDS) {
		memcpy(ret_words, at, sizeof *ret_words);
		return *ret_words != NULL;
	}
	memcpy(ret_number, at, sizeof *ret_number);
	return row->kind == GPC_FACT_TRUTH ? *ret_number != GPC_NOT_KNOWN
					   : *ret_number != GPUCACHE_UNKNOWN;
}

/* The recording has 0 where nothing is known, or needed. */
static uint64_t unless_none(uint64_t bytes)
{
	return bytes ? bytes : GPUCACHE_UNKNOWN;
}

static void set_request(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
	/* 2^64 - 1 means "unknown", so a request of that size counts as one byte less. */
	facts->asked = gpc_smaller(oom->requested, GPUCACHE_UNKNOWN - 1);
	facts->rounded = gpc_smaller(oom->rounded, GPUCACHE_UNKNOWN - 1);
	if (oom->stack)
		facts->asked_site = oom->stack;
	facts->is_assumed =
		truth(oom->kind == GPUCACHE_KIND_CONTEXT || oom->kind == GPUCACHE_KIND_MODULE);
	facts->is_physical = truth(oom->kind == GPUCACHE_KIND_PHYSICAL);
	facts->is_on_host = truth(gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST);
	if (oom->kind == GPUCACHE_KIND_ASYNC)
		facts->pool_live = oom->kind_bytes[GPUCACHE_KIND_ASYNC];
	facts->pools_live = oom->kind_bytes[GPUCACHE_KIND_ASYNC];
	if (oom->pool_max) {
		facts->pool_max = oom->pool_max;
		facts->pool_used = oom->pool_used;
	}
	facts->is_torch_limit = truth(oom->kind == GPUCACHE_KIND_TENSOR);
	facts->is_caching = truth(oom->setup & GPUCACHE_OOM_CACHING);
	facts->is_segment = truth(oom->kind == GPUCACHE_KIND_DEVICE);
	facts->is_capturing = truth(oom->setup & GPUCACHE_OOM_CAPTURING);
	facts->is_eager = truth(oom->setup & GPUCACHE_OOM_EAGER);
	facts->is_fraction = truth(oom->setup & GPUCACHE_OOM_FRACTION);
	facts->rounds_up = truth(oom->setup & GPUCACHE_OOM_ROUNDUP);
	facts->torch_rounds = truth(oom->setup & GPUCACHE_OOM_TORCH_ROUNDUP);
	facts->has_graphs = truth(oom->setup & GPUCACHE_OOM_GRAPHS);
	facts->never_waits = truth(!(oom->setup & GPUCACHE_OOM_WAIT));
	facts->limit = oom->limit ? oom->limit : GPUCACHE_UNKNOWN;
}

/*
 * What other processes hold.  The balance counts all managed memory as resident, and cuts the others' line if the sum
 * exceeds the total; so with managed memory NVML's own list counts if its sum is larger.
 */
static uint64_t others_of(const struct gpucache_oom *oom)
{
	uint64_t others = oom->balance.other_processes;
	uint64_t listed = 0;

	for (uint32_t i = 0; i < oom->n_neighbours && i < GPUCACHE_MAX_NEIGHBOURS; i++)
		if (oom->neighbours[i].bytes != GPUCACHE_UNKNOWN)
			listed = gpc_bytes_add(listed, oom->neighbours[i].bytes);
	return others != GPUCACHE_UNKNOWN && oom->kind_bytes[GPUCACHE_KIND_MANAGED] &&
			       listed > others
		       ? listed
		       : others;
}

static void set_balance(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
	const struct gpucache_balance *sheet = &oom->balance;

	facts->total = sheet->device_total;
	facts->free_before = oom->free_before;
	facts->free_after = oom->free_after;
	facts->available =
		sheet->device_free != GPUCACHE_UNKNOWN ? sheet->device_free : oom->free_after;
	facts->live = sheet->requested;
	facts->rounding = sheet->rounding;
	facts->pending = sheet->pending;
	facts->largest_pending = oom->largest_pending;
	facts->cached = sheet->cached;
	if (oom->kind != GPUCACHE_KIND_TENSOR) {
		facts->piece = oom->piece != GPUCACHE_UNKNOWN ? oom->piece : sheet->cached_largest;
		facts->returnable = gpc_smaller(oom->returnable_bytes, sheet->cached);
	}
	facts->other_piece = oom->other_piece;
	facts->direct = sheet->direct;
	facts->contexts = oom->kind_bytes[GPUCACHE_KIND_CONTEXT];
	if (oom->n_contexts)
		facts->n_contexts = oom->n_contexts;
	facts->modules = oom->kind_bytes[GPUCACHE_KIND_MODULE];
	facts->managed = oom->kind_bytes[GPUCACHE_KIND_MANAGED];
	facts->pool_idle = oom->kind_bytes[GPUCACHE_KIND_POOL];
	facts->outside = sheet->process_outside;
	facts->others = others_of(oom);
	facts->reserve = sheet->driver_reserve;
	facts->unattributed = sheet->unattributed;
	facts->plain_live = oom->plain_live;
	facts->page_waste = oom->page_waste;
	facts->page_blocks = oom->page_blocks;
	facts->usual_live = oom->usual_live;
	facts->usual_base = oom->usual_base;
	facts->pinned = oom->host_bytes;
	facts->row_padding = oom->row_padding;
	if (oom->refused_frees) {
		facts->refused_frees = oom->refused_frees;
		facts->refused_free_site = oom->refused_free_stack;
	}
	if (oom->taken_bytes) {
		facts->taken = oom->taken_bytes;
		facts->taken_site = oom->taken_stack;
	}
	facts->host_room = oom->host_room ? oom->host_room : GPUCACHE_UNKNOWN;
	facts->n_frees = oom->n_free;
	facts->n_dropped = oom->n_dropped;
}

static void set_growth(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
	if (oom->growth_stack)
		facts->growth_site = oom->growth_stack;
	facts->growth = oom->growth_bytes;
	facts->growth_others = oom->growth_others;
	facts->growth_held = oom->growth_held;
	facts->growth_blocks = oom->growth_blocks;
	facts->growth_total = oom->growth_total;
	facts->is_renewed = truth(oom->grows_how == GPUCACHE_GROWS_RENEWED);
	facts->is_repeated = truth(oom->grows_how == GPUCACHE_GROWS_AGAIN);
	facts->needs_more = truth(oom->growth_stack && oom->grows_how == GPUCACHE_GROWS_STEPS);
	facts->is_varied = truth(oom->is_varied);
}

void gpc_facts_from_oom(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
	const struct gpucache_neighbour *first = &oom->neighbours[0];

	set_request(facts, oom);
	set_balance(facts, oom);
	set_growth(facts, oom);
	if (oom->torch.reserved) {
		facts->torch_asked = oom->torch.requested;
		facts->torch_live = gpc_smaller(oom->torch.allocated, oom->torch.reserved);
		facts->torch_held = oom->torch.reserved;
		if (oom->setup & GPUCACHE_OOM_IDLE)
			facts->torch_idle = oom->idle_bytes;
		if (oom->idle_stack)
			facts->idle_site = oom->idle_stack;
	}
	facts->is_xla = truth(oom->framework == GPUCACHE_FRAMEWORK_XLA);
	if (oom->program.name[0]) {
		facts->program = oom->program.name;
		facts->program_temporaries = unless_none(oom->program.temporaries);
		facts->program_arguments = unless_none(oom->program.arguments);
		facts->program_outputs = unless_none(oom->program.outputs);
	}
	facts->pool_in_use = unless_none(oom->program.pool_in_use);
	if (oom->idle_gpu) {
		facts->idle_gpu = oom->idle_gpu - 1;
		facts->idle_free = oom->idle_free;
	}
	if (oom->n_neighbours == 0 || first->bytes == GPUCACHE_UNKNOWN)
		return;
	facts->neighbour_pid = first->pid;
	facts->neighbour_name = first->name[0] ? first->name : "(name not visible)";
	facts->neighbour_bytes = first->bytes;
	if (first->own_age_s)
		facts->neighbour_age = first->own_age_s * UINT64_C(1000000000);
}
