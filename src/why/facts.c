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
	if (oom->kind == GPUCACHE_KIND_ASYNC)
		facts->pool_live = oom->kind_bytes[GPUCACHE_KIND_ASYNC];
	if (oom->pool_max) {
		facts->pool_max = oom->pool_max;
		facts->pool_used = oom->pool_used;
	}
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

	facts->available =
		sheet->device_free != GPUCACHE_UNKNOWN ? sheet->device_free : oom->free_after;
	if (oom->kind != GPUCACHE_KIND_TENSOR) {
		facts->piece = oom->piece != GPUCACHE_UNKNOWN ? oom->piece : sheet->cached_largest;
		facts->returnable = gpc_smaller(oom->returnable_bytes, sheet->cached);
	}
	if (oom->n_contexts)
		facts->n_contexts = oom->n_contexts;
	facts->others = others_of(oom);
	if (oom->refused_frees) {
		facts->refused_frees = oom->refused_frees;
		facts->refused_free_site = oom->refused_free_stack;
	}
	if (oom->taken_bytes) {
		facts->taken = oom->taken_bytes;
		facts->taken_site = oom->taken_stack;
	}
	facts->host_room = oom->host_room ? oom->host_room : GPUCACHE_UNKNOWN;
}

static void set_plain_ones(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
#define VALUE_BYTES(value)               (value)
#define VALUE_COUNT(value)               (value)
#define VALUE_TRUTH(value)               truth(value)
#define FROM(kind, name, value, meaning) facts->name = VALUE_##kind(value);
#define FACT(...)
#include "why/facts.def"
}

void gpc_facts_from_oom(struct gpc_facts *facts, const struct gpucache_oom *oom)
{
	const struct gpucache_neighbour *first = &oom->neighbours[0];

	set_plain_ones(facts, oom);
	set_request(facts, oom);
	set_balance(facts, oom);
	if (oom->growth_stack)
		facts->growth_site = oom->growth_stack;
	if (oom->torch.reserved) {
		facts->torch_asked = oom->torch.requested;
		facts->torch_live = gpc_smaller(oom->torch.allocated, oom->torch.reserved);
		facts->torch_held = oom->torch.reserved;
		if (oom->setup & GPUCACHE_OOM_IDLE)
			facts->torch_idle = oom->idle_bytes;
		if (oom->idle_stack)
			facts->idle_site = oom->idle_stack;
	}
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
