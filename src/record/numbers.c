/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of event numbers: see base/numbers.h. */
#include "record/record.h"

/* A run is this part of what was used so far, so that little of the ring stays empty. */
#define RUN_PART 4
#define RUN_MAX  32

/* Until its event comes, a slot says that nothing happened. */
static void set_aside(struct gpc_record *rec, uint64_t number)
{
	gpc_word *word = (void *)&rec->events[number & (rec->n_events - 1)];

	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	__atomic_store_n(word + 6, GPUCACHE_EVENT_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(word, number + 1, __ATOMIC_RELEASE);
}

uint64_t gpc_record_renew_numbers(struct gpc_record *rec, struct gpc_numbers *numbers)
{
	uint64_t n = numbers->n_used / RUN_PART;
	uint64_t first;

	n = n < 1 ? 1 : n > RUN_MAX ? RUN_MAX : n;
	first = atomic_fetch_add_explicit(&rec->next_event, n, memory_order_relaxed);
	for (uint64_t i = 1; i < n; i++)
		set_aside(rec, first + i);
	numbers->next = first + 1;
	numbers->end = first + n;
	numbers->n_used++;
	return first;
}
