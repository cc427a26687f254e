/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of the recording: arithmetic on the fields of struct gpucache_counters, and the table by which they are
 * added, cleared and shown.
 *
 * There is one writer of a record at a time, which holds the pool's lock, and there are readers in other threads and
 * processes at any time.  An addition is a relaxed load and a relaxed store, without a locked instruction.
 *
 * Invariants  1 counters.def has one row for each field of struct gpucache_counters except identity and
 *               reserved fields: a static assertion.
 * Threads     The caller serializes writers of one record; readers need nothing.
 * Failure     None.
 * Limits      Readers may see an operation half done, never a torn number.
 */
#ifndef GPC_MODEL_COUNTERS_H
#define GPC_MODEL_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

static inline uint64_t gpc_counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void gpc_counter_set(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static inline void gpc_counter_add(uint64_t *counter, uint64_t n)
{
	gpc_counter_set(counter, gpc_counter_get(counter) + n);
}

static inline void gpc_counter_sub(uint64_t *counter, uint64_t n)
{
	gpc_counter_set(counter, gpc_counter_get(counter) - n);
}

static inline void gpc_counter_raise(uint64_t *peak, uint64_t value)
{
	if (value > gpc_counter_get(peak))
		gpc_counter_set(peak, value);
}

/* Adds `n`, and raises `peak` to the sum if that is higher. */
static inline void gpc_counter_add_peak(uint64_t *counter, uint64_t *peak, uint64_t n)
{
	gpc_counter_add(counter, n);
	gpc_counter_raise(peak, gpc_counter_get(counter));
}

/* ---- the table ---- */

/* See counters.def. */
enum gpc_counter_when {
	GPC_WHEN_HEAP,
	GPC_WHEN_BESIDE,
	GPC_WHEN_PEAK,
	GPC_WHEN_EVER
};
enum gpc_counter_adds {
	GPC_ADDS_SUM,
	GPC_ADDS_MAX
};
enum gpc_counter_counts {
	GPC_COUNTS_BYTES,
	GPC_COUNTS_CALLS,
	GPC_COUNTS_TIME,
	GPC_COUNTS_REASON, /* enum gpucache_one_stream_end */
	GPC_COUNTS_BYTES_BY_KIND,
	GPC_COUNTS_CALLS_BY_RUNG,
};

struct gpc_counter {
	const char *key;
	uint32_t offset; /* in struct gpucache_counters */
	uint32_t n_words;
	enum gpc_counter_when when;
	enum gpc_counter_adds adds;
	enum gpc_counter_counts counts;
};

enum {
#define COUNTER(name, when, adds, counts, key, stats) GPC_COUNTER_##name,
#include "model/counters.def"
	GPC_N_COUNTERS,
};

extern const struct gpc_counter gpc_counters[GPC_N_COUNTERS];

/* The words of a counter. */
const uint64_t *gpc_counter_words(
	const struct gpucache_counters *counters, const struct gpc_counter *counter);

/* Adds the counters of one context to a sum. */
void gpc_counters_add(struct gpucache_counters *sum, const struct gpucache_counters *one);

/* Clears the counters that have this `when` in counters.def. */
void gpc_counters_clear(struct gpucache_counters *counters, enum gpc_counter_when when);

#endif
