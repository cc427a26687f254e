/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of counters.def become one table, by which the counters are added and cleared.  A static_assert adds up the
 * sizes of the rows, so a counter without a row does not compile.
 */
#include "model/counters.h"

#include <assert.h>
#include <stddef.h>

#define FIELD(name) (((struct gpucache_counters *)0)->name)

const struct gpc_counter gpc_counters[GPC_N_COUNTERS] = {
#define COUNTER(name, when, adds, counts, key, stats)                                           \
	{ key, offsetof(struct gpucache_counters, name), sizeof FIELD(name) / sizeof(uint64_t), \
		GPC_WHEN_##when, GPC_ADDS_##adds, GPC_COUNTS_##counts },
#include "model/counters.def"
};

#define COUNTER(name, when, adds, counts, key, stats) +sizeof FIELD(name)
static_assert(offsetof(struct gpucache_counters, requested_bytes) + sizeof FIELD(reserved)
#include "model/counters.def"
		      == sizeof(struct gpucache_counters),
	"each counter of the recording has a row in counters.def");

const uint64_t *gpc_counter_words(
	const struct gpucache_counters *counters, const struct gpc_counter *counter)
{
	return (const uint64_t *)(const void *)((const char *)counters + counter->offset);
}

void gpc_counters_add(struct gpucache_counters *sum, const struct gpucache_counters *one)
{
	for (unsigned i = 0; i < GPC_N_COUNTERS; i++) {
		const struct gpc_counter *counter = &gpc_counters[i];
		const uint64_t *from = gpc_counter_words(one, counter);
		uint64_t *to = (uint64_t *)gpc_counter_words(sum, counter);

		for (uint32_t n = 0; n < counter->n_words; n++) {
			uint64_t word = gpc_counter_get(&from[n]);

			if (counter->adds == GPC_ADDS_SUM)
				to[n] += word;
			else if (word > to[n])
				to[n] = word;
		}
	}
}

void gpc_counters_clear(struct gpucache_counters *counters, enum gpc_counter_when when)
{
	for (unsigned i = 0; i < GPC_N_COUNTERS; i++) {
		const struct gpc_counter *counter = &gpc_counters[i];
		uint64_t *words = (uint64_t *)gpc_counter_words(counters, counter);

		for (uint32_t n = 0; counter->when == when && n < counter->n_words; n++)
			gpc_counter_set(&words[n], 0);
	}
}
