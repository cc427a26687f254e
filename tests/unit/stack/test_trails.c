/* SPDX-License-Identifier: Apache-2.0 */
/* Who is on a trail has its stack; and each word of a trail matters. */
#include "trailed.h"

#include <alloca.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/metamem.h"

static const void *volatile keep;
static struct gpc_trail_start last_start;

/* What a capture from the caller starts with. */
static struct gpc_trail_start start_at(struct gpc_walk_start walk)
{
	struct gpc_trail_start start = { .walk = walk };

	assert_true(gpc_python_find_top(&stacks.python, &start.python));
	start.epoch = (uint64_t)gpc_modules_n_turns(&stacks.modules) << 32 |
		      gpc_walk_n_changes(&stacks.unwind.walk);
	return start;
}

/* As gpc_stack_capture, but only by a trail. */
static __attribute__((noinline)) uint32_t follow(struct gpc_stacks *of, uint32_t skip)
{
	struct gpc_trail_start start = start_at(gpc_walk_caller());

	start.skip = skip;
	last_start = start;
	return gpc_trails_find(&of->trails, &of->python, &start);
}

typedef uint32_t act_fn(struct gpc_stacks *of, uint32_t skip);

/* From here on, all calls of these tests have the same words. */
static __attribute__((noinline)) uint32_t do_it(act_fn *act)
{
	uint32_t id = act(&stacks, 0);

	__asm__ volatile("" ::: "memory");
	return id;
}

static __attribute__((noinline)) uint32_t descend(act_fn *act, int n)
{
	uint32_t id = n ? descend(act, n - 1) : do_it(act);

	__asm__ volatile("" ::: "memory");
	return id;
}

/* Two functions with frames of one size, so that all that differs is one word. */
#define OUTER(name)                                                        \
	static __attribute__((noinline)) uint32_t name(act_fn *act, int n) \
	{                                                                  \
		uint32_t id = descend(act, n);                             \
                                                                           \
		__asm__ volatile("nop" ::: "memory");                      \
		return id;                                                 \
	}

OUTER(outer_a)
OUTER(outer_b)

static __attribute__((noinline)) uint32_t of_any_size(act_fn *act, int n)
{
	keep = alloca((size_t)n + 1);
	return do_it(act) + (keep == NULL);
}

/* Captures three times: new, known, by its trail; then by its trail alone.  From one place. */
static uint32_t capture_on_trail(uint32_t (*from)(act_fn *act, int n), int n)
{
	uint32_t ids[4];

	for (volatile int i = 0; i < 4; i++)
		ids[i] = from(i < 3 ? gpc_stack_capture : follow, n);
	assert_int_not_equal(ids[0], 0);
	for (int i = 1; i < 4; i++)
		assert_int_equal(ids[i], ids[0]);
	return ids[0];
}

static struct gpc_trail *newest(void)
{
	return &stacks.trails.trails[(stacks.trails.n_kept - 1) % GPC_TRAILS];
}

TEST(what_was_captured_twice_has_a_trail)
{
	uint32_t ids[5];

	skip_where_it_is_off();
	for (volatile int i = 0; i < 5; i++)
		ids[i] = descend(i % 2 ? follow : gpc_stack_capture, 3);
	assert_int_not_equal(ids[0], 0);
	assert_int_equal(ids[1], 0);
	assert_int_equal(ids[2], ids[0]);
	assert_int_equal(ids[3], ids[0]);
	assert_int_equal(ids[4], ids[0]);
	assert_int_equal(stacks.trails.n_kept, 1);
}

TEST(stacks_that_differ_in_one_word_far_out_are_told_apart)
{
	uint32_t (*const from[])(act_fn *, int) = { outer_a, outer_b };
	uint32_t first[2], again[2];

	skip_where_it_is_off();
	for (volatile int turn = 0; turn < 6; turn++)
		for (volatile int i = 0; i < 2; i++) {
			again[i] = from[i](turn < 5 ? gpc_stack_capture : follow, 30);
			if (turn == 0)
				first[i] = again[i];
			assert_int_equal(again[i], first[i]);
		}
	assert_int_not_equal(first[0], first[1]);
}

TEST(frames_of_changing_size_are_told_apart)
{
	skip_where_it_is_off();
	for (volatile int turn = 0; turn < 4; turn++)
		for (volatile int n = 0; n < 3000; n += 37)
			(void)of_any_size(gpc_stack_capture, n);
	for (volatile int n = 0; n < 3000; n += 370)
		(void)capture_on_trail(of_any_size, n);
}

static __attribute__((noinline)) uint32_t with_one_more(act_fn *act, int n)
{
	uint32_t id = of_any_size(act, n);

	__asm__ volatile("" ::: "memory");
	return id;
}

static __attribute__((noinline)) uint32_t through(
	uint32_t (*next)(act_fn *act, int n), act_fn *act, int n)
{
	uint32_t id = next(act, n);

	__asm__ volatile("" ::: "memory");
	return id;
}

/* A frame that grows over its caller, which is not called any more: what the caller had there is there still. */
TEST(words_that_are_left_over_are_no_frame)
{
	uint32_t kept = 0, found = 0, n_same = 0;
	uintptr_t sp = 0;

	skip_where_it_is_off();
	/* All from one place.  The largest frame comes first, so that nobody writes on what is left over. */
	for (volatile int i = 0; i < 104; i++) {
		uint32_t id = through(i < 4 ? with_one_more : of_any_size,
			i < 3 ? gpc_stack_capture : follow, i < 4 ? 500 : 900 - 4 * i);

		if (i == 3) {
			kept = id;
			sp = last_start.walk.sp;
		} else if (i > 3) {
			found |= id;
			n_same += last_start.walk.sp == sp;
		}
	}
	assert_int_not_equal(kept, 0);
	assert_int_equal(found, 0);
#ifndef __SANITIZE_ADDRESS__ /* whose frames have other steps */
	assert_true(n_same > 0);
#endif
}

/* From one place: captures twice, and then changes what `change` changes before each attempt to follow. */
TEST(each_word_matters)
{
	uint32_t (*const from[])(act_fn *, int) = { descend, of_any_size };

	skip_where_it_is_off();
	for (size_t f = 0; f < N_OF(from); f++) {
		struct gpc_trail *trail = NULL;
		uint32_t n = 0, id = 0;

		for (volatile uint32_t i = 0; i < 3 + n; i++) {
			uint32_t found;

			if (i >= 3)
				atomic_fetch_add(&trail->walk.words[i - 3], 1);
			found = from[f](i < 2 ? gpc_stack_capture : follow, 5);
			if (i >= 3)
				atomic_fetch_sub(&trail->walk.words[i - 3], 1);
			assert_int_equal(found, i >= 3 ? 0 : id ? id : found);
			id = found ? found : id;
			if (i == 1) {
				trail = newest();
				n = atomic_load(&trail->walk.n);
				assert_true(n > 5);
			}
		}
	}
}

TEST(a_rule_that_changes_ends_the_trails)
{
	uint32_t ids[8];

	skip_where_it_is_off();
	for (volatile int i = 0; i < 8; i++) {
		/* A rule that is new changes no walk that was made. */
		if (i == 3)
			gpc_walk_refute(&stacks.unwind.walk, (uintptr_t)&set_up);
		if (i == 4)
			gpc_walk_refute(&stacks.unwind.walk, newest()->walk.words[2]);
		if (i == 6)
			gpc_walk_forget(&stacks.unwind.walk, 0, UINTPTR_MAX);
		ids[i] = descend(i < 2 || i == 5 || i == 7 ? gpc_stack_capture : follow, 3);
	}
	assert_int_equal(ids[2], ids[0]);
	assert_int_equal(ids[3], ids[0]);
	assert_int_equal(ids[4], 0);
	assert_int_equal(ids[5], ids[0]);
	assert_int_equal(ids[6], 0);
	assert_int_equal(ids[7], ids[0]);
}

TEST(rules_that_are_learned_again_end_the_trails)
{
	uint32_t ids[3];

	skip_where_it_is_off();
	for (volatile int i = 0; i < 3; i++) {
		if (i == 2) {
			atomic_store(&stacks.unwind.walk.table->n_rules, GPC_WALK_RULES);
			gpc_walk_refute(&stacks.unwind.walk, (uintptr_t)&set_up);
		}
		ids[i] = descend(i < 2 ? gpc_stack_capture : follow, 3);
	}
	assert_int_not_equal(ids[1], 0);
	assert_int_equal(ids[2], 0);
}

static __attribute__((noinline)) uint32_t omit(act_fn *act, uint32_t skip)
{
	uint32_t id = act(&stacks, skip);

	__asm__ volatile("" ::: "memory");
	return id;
}

TEST(who_omits_more_frames_has_another_stack)
{
	uint32_t ids[3] = { 0 };

	skip_where_it_is_off();
	/* From one place. */
	for (volatile uint32_t i = 0; i < 12; i++) {
		uint32_t id = omit(i < 9 ? gpc_stack_capture : follow, i % 3);

		assert_int_equal(id, ids[i % 3] ? ids[i % 3] : id);
		ids[i % 3] = id;
	}
	assert_true(ids[0] && ids[0] != ids[1] && ids[1] != ids[2]);
}

static struct gpc_raw_stack kept_as;

static __attribute__((noinline)) uint32_t keep_as(struct gpc_stacks *of, uint32_t skip)
{
	struct gpc_trail_start start = start_at(gpc_walk_caller());

	start.skip = skip;
	gpc_trails_keep(
		&of->trails, &of->unwind.walk, &of->python, &start, 77, &kept_as, GPC_STACKS_DEPTH);
	return 0;
}

/* As if a walk by other rules had found it. */
TEST(no_trail_leads_to_a_stack_of_other_frames)
{
	static uint64_t frames[GPC_STACKS_DEPTH];
	struct gpc_raw_stack stack = { 0 };

	skip_where_it_is_off();
	kept_as = (struct gpc_raw_stack){ .frames = frames };
	for (volatile int i = 0; i < 9; i++) {
		uint32_t id;

		if (i % 3 == 1) {
			memcpy(frames, stack.frames, stack.n_native * sizeof *frames);
			kept_as.n_native = stack.n_native;
			if (i == 1)
				frames[stack.n_native - 1]++;
			if (i == 4)
				kept_as.n_native--;
		}
		id = descend(i % 3 == 0 ? gpc_stack_capture : i % 3 == 1 ? keep_as : follow, 4);
		if (i % 3 == 0) {
			stacks.trails.n_kept = 0;
			assert_true(gpc_depot_find(&stacks.depot, id, &stack));
			memset(stacks.trails.trails, 0, sizeof *stacks.trails.trails);
		}
		if (i % 3 == 2)
			assert_int_equal(id, i == 8 ? 77 : 0);
	}
}

/* A place whose object found no room in the table: who comes there next may do so unseen. */
TEST(no_trail_leads_through_a_place_that_nobody_is_known_to_have)
{
	stacks.modules.n_known = 0;
	atomic_store(&stacks.modules.end, UINT64_MAX);
	for (volatile int i = 0; i < 3; i++)
		(void)descend(gpc_stack_capture, 3);
	assert_int_equal(stacks.trails.n_kept, 0);
}

TEST(half_a_trail_is_none)
{
	uint32_t ids[5];

	skip_where_it_is_off();
	for (volatile int i = 0; i < 5; i++) {
		if (i == 3)
			atomic_fetch_add(&newest()->seq, 1);
		ids[i] = descend(i < 2 ? gpc_stack_capture : follow, 3);
		if (i == 3)
			atomic_fetch_sub(&newest()->seq, 1);
	}
	assert_int_equal(ids[2], ids[0]);
	assert_int_equal(ids[3], 0);
	assert_int_equal(ids[4], ids[0]);
}

#define N_STACKS ((int)GPC_TRAILS + 100)

TEST(the_oldest_trails_make_room)
{
	static uint32_t ids[N_STACKS];

	skip_where_it_is_off();
	for (volatile int turn = 0; turn < 4; turn++)
		for (volatile int n = 0; n < N_STACKS; n++) {
			uint32_t id = descend(gpc_stack_capture, n);

			assert_int_equal(turn ? ids[n] : id, id);
			ids[n] = id;
		}
	assert_true(stacks.trails.n_kept > GPC_TRAILS + N_STACKS);
	(void)capture_on_trail(descend, 10);
}

TEST(without_memory_each_capture_walks)
{
	struct gpc_trail *trails = stacks.trails.trails;

	stacks.trails.trails = NULL;
	for (volatile int i = 0; i < 3; i++) {
		assert_int_not_equal(descend(gpc_stack_capture, 3), 0);
		assert_int_equal(descend(follow, 3), 0);
	}
	stacks.trails.trails = trails;
}

/* --- A stack that is gone --------------------------------------------------------------------- */

static ucontext_t outside, fiber;
static struct gpc_trail of_fiber;
static struct gpc_trail_start start_of_fiber;
static char *beyond;

static __attribute__((noinline)) uint32_t trace(struct gpc_stacks *of, uint32_t skip)
{
	uint64_t frames[2];

	start_of_fiber = start_at(gpc_walk_caller());
	assert_int_equal(gpc_walk_trace(&of->unwind.walk, &start_of_fiber.walk, frames, 2, 0,
				 &of_fiber.walk),
		2);
	assert_true(gpc_walk_follows(
		&start_of_fiber.walk, &of_fiber.walk, &of_fiber.seq, of_fiber.seq));
	return 1;
}

static void run_fiber(void)
{
	/* The capture learns the rules, and what can be read. */
	for (volatile int i = 0; i < 2; i++)
		(void)do_it(i == 0 ? gpc_stack_capture : trace);
}

static void run_fiber_on(void *room, size_t size, void (*run)(void))
{
	assert_int_equal(getcontext(&fiber), 0);
	fiber.uc_stack.ss_sp = room;
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = &outside;
	makecontext(&fiber, run, 0);
	assert_int_equal(swapcontext(&outside, &fiber), 0);
}

TEST(no_stack_that_is_gone_is_read)
{
	const size_t size = 256 << 10;
	void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	skip_where_it_is_off();
	assert_true(room != MAP_FAILED);
	run_fiber_on(room, size, run_fiber);
	assert_int_equal(munmap(room, size), 0);
	(void)descend(gpc_stack_capture, 3);
	assert_false(gpc_walk_follows(
		&start_of_fiber.walk, &of_fiber.walk, &of_fiber.seq, of_fiber.seq));
}

/* Called on a fiber whose stack was longer: what lies beyond it was readable once. */
static __attribute__((noinline)) uint32_t follow_half(struct gpc_stacks *of, uint32_t skip)
{
	struct gpc_trail_start start = start_at(gpc_walk_caller());
	struct gpc_walk_trail *trail = &of_fiber.walk;

	/* Another thread has begun to write its trail here. */
	atomic_store(&trail->ip, start.walk.ip);
	atomic_store(&trail->sp, start.walk.sp);
	atomic_store(&trail->needs_bp, false);
	atomic_store(&trail->n, 1);
	atomic_store(&trail->offsets[0], (uint16_t)(((uintptr_t)beyond - start.walk.sp) / 8));
	assert_false(gpc_walk_follows(&start.walk, trail, &of_fiber.seq, of_fiber.seq + 1));
	return 1;
}

/* Down to the place where a stack of half the length begins. */
static void run_long_fiber(void)
{
	keep = alloca((size_t)38 << 10);
	for (volatile int i = 0; i < 2; i++)
		(void)of_any_size(gpc_stack_capture, 2000);
}

static void run_short_fiber(void)
{
	(void)do_it(follow_half);
}

TEST(half_a_trail_reads_nothing_that_is_gone)
{
	const size_t half = 40 << 10;
	char *room =
		mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	skip_where_it_is_off();
	assert_true(room != MAP_FAILED);
	run_fiber_on(room, 2 * half, run_long_fiber);
	beyond = room + half;
	assert_int_equal(munmap(beyond, half), 0);
	run_fiber_on(room, half, run_short_fiber);
	assert_int_equal(munmap(room, half), 0);
}

/* --- Threads ---------------------------------------------------------------------------------- */

/*
 * Also where the stacks do without libunwind: here no thread is ever in it but this one, before the others start.  More
 * places than there are trails, so that the threads take them from each other.
 */
#define N_DEPTHS 700

static struct gpc_walk learned;
static struct gpc_trails shared;

static bool is_readable(uintptr_t address)
{
	return address != 0;
}

static bool learn(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
	struct gpc_walk_steps steps = { 0 };

	if (!library)
		return false;
	*(void **)&steps.get_context = dlsym(library, "_Ux86_64_getcontext");
	*(void **)&steps.init_local = dlsym(library, "_ULx86_64_init_local");
	*(void **)&steps.step = dlsym(library, "_ULx86_64_step");
	*(void **)&steps.get_reg = dlsym(library, "_ULx86_64_get_reg");
	*(void **)&steps.get_save_loc = dlsym(library, "_ULx86_64_get_save_loc");
	*(void **)&steps.get_proc_info = dlsym(library, "_ULx86_64_get_proc_info");
	gpc_walk_init(&learned, &steps, is_readable);
	return learned.table;
}

static __attribute__((noinline)) uint32_t learn_here(struct gpc_stacks *of, uint32_t skip)
{
	gpc_walk_learn(&learned);
	return 0;
}

static _Thread_local uint32_t own_id;

static __attribute__((noinline)) uint32_t find_or_keep(struct gpc_stacks *of, uint32_t skip)
{
	struct gpc_trail_start start = { .walk = gpc_walk_caller() };
	uint32_t id = gpc_trails_find(&shared, &of->python, &start);
	uint64_t ip = start.walk.ip;

	if (!id)
		gpc_trails_keep(&shared, &learned, &of->python, &start, own_id,
			&(struct gpc_raw_stack){ .frames = &ip, .n_native = 1 }, 1);
	return id;
}

static void *keep_many(void *arg)
{
	uint32_t first = *(const uint32_t *)arg;
	uint32_t n_found = 0;

	for (volatile int turn = 0; turn < 20; turn++)
		for (volatile int i = 2; i < 3 * N_DEPTHS; i++) {
			uint32_t id;

			/* Three times in a row. */
			own_id = first + (uint32_t)i / 3;
			id = descend(find_or_keep, i / 3);
			if (id && id != own_id)
				return NULL;
			n_found += id != 0;
		}
	return n_found ? arg : NULL;
}

TEST(threads_follow_while_others_write)
{
	uint32_t first[4] = { 10000, 20000, 30000, 40000 };
	pthread_t threads[4];
	void *result;

	if (!learn())
		skip();
	gpc_trails_init(&shared);
	(void)descend(learn_here, 9);
	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep_many, &first[i]), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, &first[i]);
	}
	assert_true(shared.n_kept > GPC_TRAILS);
	gpc_trails_fini(&shared);
	gpc_walk_fini(&learned);
}
