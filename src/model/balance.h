/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of the balance sheet: where every byte of a device is.
 *
 *	|<------------------------- device_total -------------------------->|
 *	| requested | rounding | pending | cached | direct |  rest   | free |
 *	|<------------ taken by us, from our counters ---->|         |
 *	                                                   process_outside, other_processes,
 *	                                                   driver_reserve, then unattributed
 *
 * Our counters and the driver's free and total are facts.  NVML's numbers only divide `rest`, and never
 * enlarge it.
 *
 * Invariants
 *   1 No line is negative; an unknown line is GPUCACHE_UNKNOWN and its bytes are in `unattributed`.
 *   2 The known lines add up to device_total, unless our counters and the free bytes alone exceed it
 *     (managed memory off the device, or readings of two moments).  Then `rest` is 0 and
 *     gpc_balance_difference() returns the excess; no line is adjusted.
 *
 * Threads   Pure functions.
 * Failure   None; sums saturate.
 * Limits    One device.
 */
#ifndef GPC_MODEL_BALANCE_H
#define GPC_MODEL_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/saturating.h"
#include "gpucache_format.h"

/* The input of a balance.  GPUCACHE_UNKNOWN is allowed from cached_largest on. */
struct gpc_balance_facts {
	uint64_t requested; /* live bytes in our segments, as requested */
	uint64_t live;      /* the same blocks, as rounded */
	uint64_t pending;
	uint64_t cached;
	uint64_t direct;
	uint64_t cached_largest;
	uint64_t device_free;
	uint64_t device_total;
	uint64_t process; /* all memory of this process, ours included */
	uint64_t others;
	uint64_t driver; /* the part of the driver's reserve that lies inside device_total */
};

struct gpc_balance_line {
	const char *key; /* in JSON */
	const char *label;
	size_t offset; /* in struct gpucache_balance */
	bool ours;
};

enum gpc_balance_line_number {
#define BALANCE_LINE(member, key, label, ours) GPC_BALANCE_LINE_##member,
#include "model/balance_lines.def"
	GPC_BALANCE_LINE_COUNT,
};

/* The lines of the sum, in the order of printing; `ours` come first. */
extern const struct gpc_balance_line gpc_balance_lines[GPC_BALANCE_LINE_COUNT];

/* The bytes of one line, GPUCACHE_UNKNOWN included. */
uint64_t gpc_balance_value(
	const struct gpucache_balance *balance, const struct gpc_balance_line *line);

/*
 * Iterates over the kinds of the line `direct`: returns the next kind after `kind` (initially
 * GPUCACHE_KIND_NONE) with bytes on the device; GPUCACHE_KIND_NONE: the end.
 */
unsigned int gpc_balance_next_kind(
	const uint64_t kind_bytes[GPUCACHE_MAX_KINDS], unsigned int kind);

/* Words for this kind of memory. */
const char *gpc_kind_words(unsigned int kind);

/* True if the driver took the memory on its own during another call; its size is measured. */
static inline bool gpc_kind_is_implicit(unsigned int kind)
{
	return kind == GPUCACHE_KIND_CONTEXT || kind == GPUCACHE_KIND_MODULE;
}

/* The bytes of these kinds. */
static inline uint64_t gpc_implicit_bytes(const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	return gpc_bytes_add(kind_bytes[GPUCACHE_KIND_CONTEXT], kind_bytes[GPUCACHE_KIND_MODULE]);
}

void gpc_balance_settle(
	const struct gpc_balance_facts *facts, struct gpucache_balance *ret_balance);

/* Sum of the known lines that are ours. */
uint64_t gpc_balance_taken(const struct gpucache_balance *balance);

/* The part of gpc_balance_taken() that counts against a limit: without the driver's contexts and modules. */
static inline uint64_t gpc_balance_charged(
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	return gpc_bytes_less(gpc_balance_taken(balance), gpc_implicit_bytes(kind_bytes));
}

/* Sum of all known lines. */
uint64_t gpc_balance_sum(const struct gpucache_balance *balance);

/*
 * device_total minus the sum of all known lines; 0 if the total is unknown.
 */
int64_t gpc_balance_difference(const struct gpucache_balance *balance);

#endif
