/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of event numbers: see base/numbers.h. */
#include "record/record.h"

/* A run is this part of what was used so far, so that little of the ring stays empty. */
#define RUN_PART 4
#define RUN_MAX  32

/* Used over so long a time, or not at all: threads that meet use one up in microseconds. */
#define RUN_NS 100000

uint64_t gpc_record_renew_numbers(
	struct gpc_record *rec, struct gpc_numbers *numbers, uint64_t now_ns)
{
	uint64_t n = numbers->n_used / RUN_PART;
	uint64_t first;

	n = n < 1 ? 1 : n > RUN_MAX ? RUN_MAX : n;
	first = atomic_fetch_add_explicit(&rec->next_event, n, memory_order_relaxed);
	for (uint64_t number = first + 1; number < first + n; number++)
		__atomic_store_n(&rec->events[number & (rec->n_events - 1)].seq,
			GPUCACHE_SET_ASIDE + number, __ATOMIC_RELEASE);
	numbers->next = first + 1;
	numbers->end = first + n;
	numbers->until_ns = now_ns + RUN_NS;
	numbers->n_used++;
	return first;
}
