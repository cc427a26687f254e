/* SPDX-License-Identifier: Apache-2.0 */
/* The fast walk through frames of every kind, compared with libunwind. */
#include "unit.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/metamem.h"
#include "walked.h"

static uint32_t n_compared;

/* Three fast walks: unknown, learned, known.  The first frame is in this function, and may differ between calls. */
static __attribute__((noinline)) int compare(int unused)
{
	struct gpc_unwind asking = unwind;
	uint64_t frames[4][MAX] = { 0 };
	uint32_t n[4];
	volatile int n_walks = 4; /* one call, not four */

	asking.walk.table = NULL;
	for (int i = 0; i < n_walks; i++)
		n[i] = gpc_unwind_capture(i == 3 ? &asking : &unwind, frames[i], MAX, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(n[i], n[3]);
		assert_memory_equal(frames[i] + 1, frames[3] + 1, sizeof frames[3] - 8);
	}
	assert_true(n[3] > 3);
	n_compared++;
	return unused;
}

static int open_counted(void **state)
{
	n_compared = 0;
	return open_walk(state);
}

FIXTURE(open_counted, close_walk);

static __attribute__((noinline)) int of_any_size(int n)
{
	char *room = alloca((size_t)n + 1);

	room[n] = 1;
	keep = room;
	return compare(n) + room[n];
}

static __attribute__((noinline)) int aligned(int n)
{
	_Alignas(64) char room[64];

	room[n % 64] = 1;
	keep = room;
	return of_any_size(n) + room[n % 64];
}

static __attribute__((noinline)) int unaligned(int n)
{
	char *room = alloca((size_t)n * 16 + 16);

	room[0] = 1;
	keep = room;
	return aligned(n) + room[0];
}

TEST(frames_of_changing_size)
{
	skip_where_it_is_off();
	for (int n = 0; n < 3000; n += 37) {
		of_any_size(n);
		unaligned(n);
	}
	assert_int_equal(n_compared, 2 * 82);
}

static __attribute__((noinline)) int large(int n)
{
	char room[200000];

	room[n] = 1;
	keep = room;
	return compare(n) + room[n];
}

static __attribute__((noinline)) int recursive(int n)
{
	int result = n ? recursive(n - 1) : compare(n);

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

static int compare_items(const void *a, const void *b)
{
	(void)compare(0);
	return (a > b) - (a < b);
}

TEST(large_frames_recursion_and_library_code)
{
	int items[3] = { 3, 1, 2 };

	skip_where_it_is_off();
	for (int n = 0; n < 5; n++)
		large(n);
	for (int n = 0; n < 90; n += 10)
		recursive(n);
	qsort(items, 3, sizeof *items, compare_items);
	assert_true(n_compared >= 5 + 9 + 2);
}

static void in_handler(int number)
{
	(void)compare(number);
}

TEST(a_signal_frame_is_left_to_libunwind)
{
	struct sigaction action = { .sa_handler = in_handler };
	struct sigaction before;

	skip_where_it_is_off();
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_int_equal(n_compared, 3);
}

static void *run(void *arg)
{
	for (int i = 0; i < 20; i++)
		recursive(i);
	return arg;
}

TEST(a_thread_has_an_end_of_its_own)
{
	pthread_t thread;

	skip_where_it_is_off();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(n_compared, 60);
}

/* push %rbx; call *%rdi; pop %rbx; ret */
static const unsigned char stub[] = { 0x53, 0xff, 0xd7, 0x5b, 0xc3 };

static int compare_without_argument(void)
{
	int result = compare(1);

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

TEST(code_without_tables_is_left_to_libunwind)
{
	void (*made)(int (*)(void));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	skip_where_it_is_off();
	assert_true(page != MAP_FAILED);
	memcpy(page, stub, sizeof stub);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	memcpy(&made, &page, sizeof made);
	for (int i = 0; i < 3; i++)
		made(compare_without_argument);
	assert_int_equal(munmap(page, 4096), 0);
	assert_int_equal(n_compared, 3);
}

#if defined(__x86_64__)
/*
 * Calls with `number` in rbp, as optimized code with unwind tables does: any value may stand there.  The frame has 48
 * bytes.
 */
__attribute__((naked, noinline)) static int with_rbp(
	uintptr_t number __attribute__((unused)), int (*call)(void) __attribute__((unused)))
{
	__asm__("push %rbp\n"
		".cfi_def_cfa rsp, 16\n"
		".cfi_offset rbp, -16\n"
		"sub $32, %rsp\n"
		".cfi_def_cfa_offset 48\n"
		"mov %rdi, %rbp\n"
		"call *%rsi\n"
		"add $32, %rsp\n"
		".cfi_def_cfa_offset 16\n"
		"pop %rbp\n"
		".cfi_restore rbp\n"
		".cfi_def_cfa_offset 8\n"
		"ret\n");
}
#else
/* Elsewhere the table is off, and the tests of it skip. */
static int with_rbp(uintptr_t number, int (*call)(void))
{
	return call();
}
#endif

TEST(any_number_may_be_in_rbp)
{
	static const uintptr_t numbers[] = { 0, 1, 8, UINTPTR_MAX / 2, UINTPTR_MAX - 63,
		UINTPTR_MAX - 31, UINTPTR_MAX - 16, UINTPTR_MAX - 15, UINTPTR_MAX - 7,
		UINTPTR_MAX };
	const int n = sizeof numbers / sizeof *numbers;

	skip_where_it_is_off();
	/* Each is walked by the rules of the one before, and learned with no rule at all. */
	for (int i = 0; i < 2 * n; i++) {
		(void)with_rbp(numbers[i % n], compare_without_argument);
		if (i >= n)
			memset(unwind.walk.table, 0, sizeof *unwind.walk.table);
	}
	assert_int_equal(n_compared, 2 * n);
}

/* push %rbp; mov $8,%ebp; call *%rdi; pop %rbp; ret: libunwind takes rbp for a frame pointer. */
static const unsigned char number_in_rbp[] = { 0x55, 0xbd, 8, 0, 0, 0, 0xff, 0xd7, 0x5d, 0xc3 };

static void *call_made(void *made)
{
	int (*function)(int (*)(void));

	if (unwind.walk.is_readable(8))
		return NULL;
	memcpy(&function, &made, sizeof function);
	return function(capture_only) > 0 ? made : NULL;
}

/* In a thread that has looked at no page of memory yet. */
TEST(a_number_for_a_frame_pointer_is_not_read_at)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	void *result;

	skip_where_it_is_off();
	assert_true(page != MAP_FAILED);
	memcpy(page, number_in_rbp, sizeof number_in_rbp);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_made, page), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, page);
	assert_int_equal(munmap(page, 4096), 0);
}

static void run_fiber(void)
{
	(void)recursive(9);
}

/* On a stack of n pages between two that cannot be read. */
static void on_a_stack_of(size_t n, char *place)
{
	ucontext_t here, fiber;

	assert_ptr_equal(mmap(place, (n + 2) * 4096, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		place);
	assert_int_equal(mprotect(place + 4096, n * 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(getcontext(&fiber), 0);
	fiber.uc_stack.ss_sp = place + 4096;
	fiber.uc_stack.ss_size = n * 4096;
	fiber.uc_link = &here;
	makecontext(&fiber, run_fiber, 0);
	assert_int_equal(swapcontext(&here, &fiber), 0);
	assert_int_equal(mprotect(place, (n + 2) * 4096, PROT_NONE), 0);
}

/* Each takes the place of the last one, and its own pages end where others could be read before. */
TEST(a_fiber_has_a_stack_of_its_own)
{
	char *place = mmap(NULL, 66 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	skip_where_it_is_off();
	assert_true(place != MAP_FAILED);
	for (size_t n = 64; n >= 16; n -= 16) {
		on_a_stack_of(n, place);
		(void)recursive(9);
	}
	assert_int_equal(munmap(place, 66 * 4096), 0);
	assert_int_equal(n_compared, 8);
}

static bool all_is_readable(uintptr_t address)
{
	return address != 0;
}

/* The end of a frame found by rbp may be too near for the place where its caller's rbp was saved. */
TEST(nothing_is_read_below_the_stack_pointer)
{
	const uintptr_t ip = 0x401000;
	const uint64_t by_bp = 4 | UINT64_C(512) << 3 | UINT64_C(512) << 16;
	char *pages = mmap(NULL, 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gpc_walk_start start = { .ip = ip };
	bool must_learn = true;
	uint64_t frames[2];
	struct gpc_walk walk = unwind.walk;

	skip_where_it_is_off();
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	walk.is_readable = all_is_readable;
	atomic_store(&walk.table->rules[0].place, ip);
	atomic_store(&walk.table->rules[0].word, (uint64_t)ip << 28 | by_bp);
	atomic_store(&walk.table->slots[ip % (2 * GPC_WALK_RULES)], 1);
	start.sp = (uintptr_t)pages + 4096;
	start.bp = start.sp;
	assert_int_equal(gpc_walk_frames(&walk, &start, frames, 2, 0, &must_learn), 0);
	assert_false(must_learn);
	assert_int_equal(munmap(pages, 2 * 4096), 0);
}

TEST(what_is_known_is_not_learned_again)
{
	volatile int n = 2; /* one call, not two */
	uint32_t before = 0;

	skip_where_it_is_off();
	for (int i = 0; i < n; i++) {
		before = n_learned();
		recursive(9);
	}
	assert_int_equal(n_learned(), before);
}

/* The functions of this file are as of a library that is unloaded. */
static void forget_these(void)
{
	gpc_walk_forget(&unwind.walk, (uintptr_t)&compare - 65536, (uintptr_t)&compare + 65536);
}

TEST(what_was_unloaded_is_forgotten)
{
	uint32_t of_others = 0;

	skip_where_it_is_off();
	/* One call, not five: nothing was unloaded in turn 1, these functions were in turn 3. */
	for (volatile int turn = 0; turn < 5; turn++) {
		if (turn == 1)
			gpc_walk_forget(&unwind.walk, 0, 1);
		if (turn == 3)
			forget_these();
		for (uint32_t i = 0; i < GPC_WALK_RULES && turn == 3; i++)
			of_others += (atomic_load(&unwind.walk.table->rules[i].word) &
					     ((1u << 28) - 1)) != 0;
		recursive(9);
		assert_true(turn == 0 || n_learned() == (turn > 2));
	}
	assert_true(of_others > 0);
}

TEST(what_comes_back_to_its_place_takes_no_new_rules)
{
	uint32_t before = 0;

	skip_where_it_is_off();
	for (volatile int turn = 0; turn < 100; turn++) {
		recursive(9);
		if (turn == 0)
			before = atomic_load(&unwind.walk.table->n_rules);
		forget_these();
	}
	assert_int_equal(atomic_load(&unwind.walk.table->n_rules), before);
}

TEST(who_learned_often_enough_asks)
{
	skip_where_it_is_off();
	atomic_store(&unwind.walk.n_learned, 1000000);
	recursive(9);
	large(1);
	assert_int_equal(n_compared, 2);
}

TEST(who_forgets_may_learn_again)
{
	uint32_t before;

	skip_where_it_is_off();
	atomic_store(&unwind.walk.n_learned, 1000000);
	recursive(9);
	before = atomic_load(&unwind.walk.table->n_rules);
	forget_these();
	recursive(9);
	assert_true(atomic_load(&unwind.walk.table->n_rules) > before);
}

static void *without_steps(void *library, const char *name)
{
	return strstr(name, "_step") ? NULL : dlsym(library, name);
}

/* A full table is cleared: what was known is lost, and learned again. */
TEST(a_full_table_starts_anew)
{
	struct gpc_walk_table *table = unwind.walk.table;

	skip_where_it_is_off();
	recursive(9);
	memset(table, 0, sizeof *table);
	for (uint32_t i = 0; i < GPC_WALK_RULES; i++) {
		atomic_store(&table->rules[i].place, i + 1);
		atomic_store(&table->rules[i].word, (uint64_t)(i + 1) << 28 | 2);
		atomic_store(&table->slots[i + 1], (uint16_t)(i + 1));
	}
	atomic_store(&table->n_rules, GPC_WALK_RULES);
	recursive(9);
	assert_true(atomic_load(&table->n_rules) < 1000);
	assert_true(atomic_load(&table->n_rules) > 9);
	recursive(9);
	assert_int_equal(n_compared, 3);
}

TEST(a_wrong_guess_is_not_followed)
{
	struct gpc_walk_table *table = unwind.walk.table;
	uint32_t before = 0;

	skip_where_it_is_off();
	for (uint32_t wrong = 0; wrong < 8; wrong++) {
		uint32_t n = atomic_load(&table->n_rules);

		for (uint32_t i = 0; i < n; i++)
			guess(&table->rules[i],
				wrong == 7 ? GPC_WALK_RULES : (n + i + wrong - 3) % n);
		guess(&table->rules[GPC_WALK_RULES], wrong);
		recursive(9);
		before = wrong ? before : n_learned();
	}
	assert_int_equal(n_learned(), before);
	assert_int_equal(n_compared, 8);
}

/* Another thread may have begun to write a rule: its words are of two addresses then. */
TEST(half_a_rule_is_unknown)
{
	struct gpc_walk_table *table = unwind.walk.table;
	volatile uint32_t broken = 2; /* one call, not four */
	uint32_t before[4];

	skip_where_it_is_off();
	for (uint32_t turn = 0; turn < 4; turn++) {
		before[turn] = n_learned();
		for (uint32_t i = 0; turn == broken && i + 1 < atomic_load(&table->n_rules); i++)
			atomic_store(&table->rules[i].word, atomic_load(&table->rules[i + 1].word));
		recursive(9);
	}
	assert_true(before[1] > before[0]);
	assert_int_equal(before[2], before[1]);
	assert_true(before[3] > before[2]);
	assert_int_equal(n_learned(), before[3]);
	assert_int_equal(n_compared, 4);
}

static void *stop_gate;

static void *walk_until_stopped(void *arg)
{
	uint64_t frames[MAX];

	while (!__atomic_load_n(&stop_gate, __ATOMIC_ACQUIRE))
		if (gpc_unwind_capture(&unwind, frames, MAX, 0) == 0)
			return NULL;
	return arg;
}

/* Others walk, and move the guesses, while rules are forgotten and learned again. */
TEST(threads_walk_while_rules_are_forgotten)
{
	pthread_t threads[2];
	void *result;

	skip_where_it_is_off();
	stop_gate = NULL;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk_until_stopped, &unwind), 0);
	for (int i = 0; i < 200; i++) {
		gpc_walk_forget(&unwind.walk, 0, UINTPTR_MAX);
		recursive(9);
	}
	__atomic_store_n(&stop_gate, &unwind, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, &unwind);
	}
	assert_int_equal(n_compared, 200);
}

TEST_WITH(without_a_table_libunwind_is_asked, NULL, NULL)
{
	gpc_metamem_fail_at(1);
	gpc_unwind_init(&unwind, dlsym);
	gpc_metamem_fail_at(0);
	assert_null(unwind.walk.table);
	recursive(9);
	gpc_unwind_fini(&unwind);
}

TEST_WITH(without_steps_libunwind_is_asked, NULL, NULL)
{
	gpc_unwind_init(&unwind, without_steps);
	assert_null(unwind.walk.table);
	recursive(9);
	gpc_unwind_fini(&unwind);
}
