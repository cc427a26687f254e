/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own accounting is fact; NVML's numbers only divide the remainder.  Each claim is cut out of the remainder in a
 * fixed order, so no line is negative, and NVML's lines never make the sum exceed the device.
 */
#include "model/balance.h"
#include "base/bytes.h"

#include <string.h>

const struct gpc_balance_line gpc_balance_lines[GPC_BALANCE_LINE_COUNT] = {
#define BALANCE_LINE(member, key, label, ours) \
	[GPC_BALANCE_LINE_##                   \
		member] = { key, label, offsetof(struct gpucache_balance, member), ours },
#include "model/balance_lines.def"
};

uint64_t gpc_balance_value(
	const struct gpucache_balance *balance, const struct gpc_balance_line *line)
{
	uint64_t value;

	memcpy(&value, (const char *)balance + line->offset, sizeof value);
	return value;
}

unsigned int gpc_balance_next_kind(const uint64_t kind_bytes[GPUCACHE_MAX_KINDS], unsigned int kind)
{
	for (kind++; kind < GPUCACHE_KIND_COUNT; kind++) {
		if (kind_bytes[kind] && gpucache_kind_place(kind) == GPUCACHE_ON_DEVICE)
			return kind;
	}
	return GPUCACHE_KIND_NONE;
}

const char *gpc_kind_words(unsigned int kind)
{
	static const char *const words[] = {
#define WORDS(name, place, text, maker) text,
		GPUCACHE_KINDS(WORDS)
#undef WORDS
	};

	return words[kind < GPUCACHE_KIND_COUNT ? kind : GPUCACHE_KIND_NONE];
}

static uint64_t sum_of(const struct gpucache_balance *balance, bool only_ours)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		uint64_t value = gpc_balance_value(balance, &gpc_balance_lines[i]);

		if (value != GPUCACHE_UNKNOWN && (gpc_balance_lines[i].ours || !only_ours))
			sum = gpc_bytes_add(sum, value);
	}
	return sum;
}

uint64_t gpc_balance_taken(const struct gpucache_balance *balance)
{
	return sum_of(balance, true);
}

uint64_t gpc_balance_sum(const struct gpucache_balance *balance)
{
	return sum_of(balance, false);
}

int64_t gpc_balance_difference(const struct gpucache_balance *balance)
{
	uint64_t sum = gpc_balance_sum(balance);
	uint64_t total = balance->device_total;

	if (total == GPUCACHE_UNKNOWN)
		return 0;
	if (total >= sum)
		return total - sum > INT64_MAX ? INT64_MAX : (int64_t)(total - sum);
	return sum - total > INT64_MAX ? INT64_MIN : -(int64_t)(sum - total);
}

/* Cuts `claimed` out of what is left.  An unknown claim cuts nothing and stays unknown. */
static uint64_t cut(uint64_t *left, uint64_t claimed)
{
	uint64_t share = claimed < *left ? claimed : *left;

	if (claimed == GPUCACHE_UNKNOWN)
		return GPUCACHE_UNKNOWN;
	*left -= share;
	return share;
}

void gpc_balance_settle(const struct gpc_balance_facts *facts, struct gpucache_balance *ret_balance)
{
	struct gpucache_balance sheet = {
		.requested = facts->requested,
		.rounding = gpc_bytes_less(facts->live, facts->requested),
		.pending = facts->pending,
		.cached = facts->cached,
		.cached_largest = facts->cached_largest,
		.direct = facts->direct,
		.process_outside = GPUCACHE_UNKNOWN,
		.other_processes = GPUCACHE_UNKNOWN,
		.driver_reserve = GPUCACHE_UNKNOWN,
		.device_free = facts->device_free,
		.device_total = facts->device_total,
	};
	uint64_t taken = gpc_balance_taken(&sheet);
	uint64_t outside = facts->process;
	uint64_t rest = 0;

	if (facts->device_total != GPUCACHE_UNKNOWN)
		rest = gpc_bytes_less(facts->device_total, taken);
	if (facts->device_free != GPUCACHE_UNKNOWN)
		rest = gpc_bytes_less(rest, facts->device_free);
	if (outside != GPUCACHE_UNKNOWN)
		outside = gpc_bytes_less(outside, taken);
	sheet.process_outside = cut(&rest, outside);
	sheet.other_processes = cut(&rest, facts->others);
	sheet.driver_reserve = cut(&rest, facts->driver);
	sheet.unattributed = rest;
	*ret_balance = sheet;
}
