/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are set aside for what will happen to one block (base/numbers.h). */
#include "private_record.h"

static const struct gpucache_event *event_at(uint64_t number)
{
	return record_at(GPUCACHE_REGION_EVENTS, number & (rec.n_events - 1));
}

static uint64_t now_ns;

/* An event of this block; returns its number. */
static uint64_t add(struct gpc_numbers *numbers, uint64_t address)
{
	const struct gpucache_event event = {
		.kind = GPUCACHE_EVENT_FREE, .address = address, .time_ns = now_ns
	};
	uint64_t end = rec.next_event;
	uint64_t number = numbers && numbers->next < numbers->end ? numbers->next : end;

	gpc_record_event(&rec, numbers, &event);
	if (event_at(number)->seq != number + 1 || event_at(number)->address != address)
		number = end; /* the run had grown stale */
	assert_int_equal(event_at(number)->seq, number + 1);
	assert_int_equal(event_at(number)->address, address);
	return number;
}

static void without_a_run_numbers_follow_one_another(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(add(NULL, i + 1), i);
}

static void a_run_grows_with_its_use_and_keeps_the_order_of_its_block(void **state)
{
	struct gpc_numbers numbers = { 0 };
	uint64_t longest = 0;
	uint64_t last = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t number = add(&numbers, 1);

		assert_true(i == 0 || number > last);
		last = number;
		(void)add(NULL, 2);
		if (numbers.end - numbers.next > longest)
			longest = numbers.end - numbers.next;
		/* At most a part of what was used lies unused. */
		assert_true(4 * (numbers.end - numbers.next) <= numbers.n_used);
	}
	assert_int_equal(longest, 31);
}

static void what_is_set_aside_says_so(void **state)
{
	struct gpc_numbers numbers = { .n_used = 16 };

	(void)state;
	for (uint64_t i = 0; i < rec.n_events; i++) /* old events everywhere */
		(void)add(NULL, 1);
	(void)add(&numbers, 2);
	assert_int_equal(numbers.end - numbers.next, 3);
	for (uint64_t number = numbers.next; number < numbers.end; number++)
		assert_int_equal(event_at(number)->seq, GPUCACHE_SET_ASIDE + number);
}

static void a_run_that_lay_too_long_is_not_used(void **state)
{
	struct gpc_numbers numbers = { .n_used = 16 };
	uint64_t unused;

	(void)state;
	(void)add(&numbers, 2);
	unused = numbers.next;
	for (uint64_t i = 0; i < rec.n_events - 1; i++)
		(void)add(NULL, 1);
	assert_true(add(&numbers, 2) >= rec.n_events);
	assert_int_equal(event_at(unused)->address, 1);
}

static void a_run_does_not_last_long(void **state)
{
	struct gpc_numbers numbers = { .n_used = 16 };
	uint64_t unused;

	(void)state;
	(void)add(&numbers, 2);
	unused = numbers.next;
	(void)add(NULL, 1);
	now_ns = 200000;
	assert_true(add(&numbers, 2) > unused + 3);
	assert_int_equal(event_at(unused)->seq, GPUCACHE_SET_ASIDE + unused);
	now_ns = 0;
}

static void a_recording_without_a_ring_numbers_nothing(void **state)
{
	struct gpc_numbers numbers = { 0 };
	const struct gpucache_event event = { .kind = GPUCACHE_EVENT_FREE };

	(void)state;
	gpc_record_mute(&rec);
	gpc_record_event(&rec, &numbers, &event);
	assert_int_equal(numbers.n_used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		private_test(without_a_run_numbers_follow_one_another),
		private_test(a_run_grows_with_its_use_and_keeps_the_order_of_its_block),
		private_test(what_is_set_aside_says_so),
		private_test(a_run_that_lay_too_long_is_not_used),
		private_test(a_run_does_not_last_long),
		private_test(a_recording_without_a_ring_numbers_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
