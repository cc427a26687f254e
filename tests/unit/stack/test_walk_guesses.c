/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses that lead to no rule: they are made anew, so that nothing is learned at each walk. */
#include "unit.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "stack/unwind.h"

#define MAX 64

static struct gpc_unwind unwind;

static const void *volatile keep;

static uint32_t n_learned(void)
{
	return atomic_load(&unwind.walk.n_learned);
}

static int open_walk(void **state)
{
	(void)state;
	gpc_unwind_init(&unwind, dlsym);
	return 0;
}

static int close_walk(void **state)
{
	(void)state;
	gpc_unwind_fini(&unwind);
	return 0;
}

static void skip_where_it_is_off(void)
{
	if (!unwind.walk.table)
		skip();
}

static int capture_only(void)
{
	uint64_t frames[MAX];
	uint32_t n = gpc_unwind_capture(&unwind, frames, MAX, 0);

	keep = frames;
	return (int)n;
}

static volatile uintptr_t nothing;

/* Where nobody called: its frame ends in a return address of 0. */
static __attribute__((noinline)) int called_by_nobody(bool is_so)
{
	uintptr_t *volatile place = (uintptr_t *)__builtin_frame_address(0) + 1;
	uintptr_t caller = *place;
	int result;

	if (is_so)
		*(volatile uintptr_t *)place = nothing;
	result = capture_only();
	*(volatile uintptr_t *)place = caller;
	return result;
}

static void no_caller_is_learned_once(void **state)
{
	volatile int n = 6; /* one call, not six */
	uint32_t before = 0;

	(void)state;
	skip_where_it_is_off();
	for (int i = 0; i < n; i++) {
		before = i == 4 ? n_learned() : before;
		assert_true(called_by_nobody(i >= 2) > 0);
	}
	assert_int_equal(n_learned(), before);
}

static __attribute__((noinline)) int deep(int n)
{
	int result = n ? deep(n - 1) : capture_only();

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

static void guess(struct gpc_walk_rule *rule, uint32_t successor)
{
	uint64_t address = atomic_load(&rule->place) & ((UINT64_C(1) << 47) - 1);

	atomic_store(&rule->place, address | (uint64_t)successor << 47);
}

/* A guess that was stored while the table was cleared leads to half a rule; one a walk is made anew. */
static void a_guess_of_half_a_rule_is_made_anew(void **state)
{
	struct gpc_walk_table *table = unwind.walk.table;
	volatile uint32_t n = 100; /* one call, not a hundred */
	uint32_t before = 0;

	(void)state;
	skip_where_it_is_off();
	for (uint32_t turn = 0; turn < n; turn++) {
		uint32_t last = atomic_load(&table->n_rules);

		before = turn + 1 == n ? n_learned() : before;
		(void)deep(5);
		if (turn != 1)
			continue;
		for (uint32_t i = 0; i < last; i++) {
			struct gpc_walk_rule *twin = &table->rules[last + i];

			atomic_store(&twin->place, atomic_load(&table->rules[i].place));
			guess(&table->rules[i], last + (i + 1) % last);
			guess(twin, last + (i + 1) % last);
		}
		atomic_store(&table->n_rules, 2 * last);
	}
	assert_int_equal(n_learned(), before);
}

#define WITH_WALK(name) cmocka_unit_test_setup_teardown(name, open_walk, close_walk)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WALK(no_caller_is_learned_once),
		WITH_WALK(a_guess_of_half_a_rule_is_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
