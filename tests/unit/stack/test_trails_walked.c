/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random trees of calls, each node of which is told by the number of its tree and its depth.  Each leaf takes its stack by
 * trail and by walking: who has the same one by walking has the same one by trail, and nobody else.
 */
#include "trailed.h"

#include <alloca.h>
#include <pthread.h>
#include <stdbool.h>

#define N_TREES    150
#define N_CAPTURES 20000
#define N_WALKERS  3
#define MAX_IDS    20000u

static struct gpc_stacks walking;
static _Atomic uint32_t by_walking[MAX_IDS], by_trail[MAX_IDS];
static _Atomic uint32_t n_wrong, n_right;

static bool is_first_or_same(_Atomic uint32_t *of, uint32_t id)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(of, &none, id) || none == id;
}

static __attribute__((noinline)) int take_both(void)
{
	uint32_t id = gpc_stack_capture(&stacks, 0);
	uint32_t walked = gpc_stack_capture(&walking, 0);
	bool is_right = id && id < MAX_IDS && walked && walked < MAX_IDS &&
			is_first_or_same(&by_walking[id], walked) &&
			is_first_or_same(&by_trail[walked], id);

	atomic_fetch_add(is_right ? &n_right : &n_wrong, 1);
	return is_right;
}

static uint32_t mixed(uint32_t tree, uint32_t depth)
{
	uint32_t x = (tree * 0x9e3779b9u) ^ (depth * 0x85ebca6bu);

	x = (x ^ x >> 15) * 0x2c1b3c6du;
	return x ^ x >> 12;
}

static int go_down(uint32_t tree, uint32_t depth);

static __attribute__((noinline)) int by_plain_frame(uint32_t tree, uint32_t depth)
{
	int result = go_down(tree, depth + 1);

	__asm__ volatile("" ::: "memory");
	return result;
}

static __attribute__((noinline)) int by_variable_frame(uint32_t tree, uint32_t depth)
{
	const void *volatile room = alloca(16 + mixed(tree, depth) % 500);

	return go_down(tree, depth + 1) + (room == NULL);
}

/* Without a frame pointer, which is then any number. */
static __attribute__((noinline, optimize("omit-frame-pointer"))) int by_no_frame_pointer(
	uint32_t tree, uint32_t depth)
{
	int result;

	__asm__ volatile("" ::: "rbx", "r12", "r13", "memory");
	result = go_down(tree, depth + 1);
	__asm__ volatile("" ::: "memory");
	return result;
}

static __attribute__((noinline)) int by_aligned_frame(uint32_t tree, uint32_t depth)
{
	_Alignas(64) volatile char room[64] = { 1 };

	return go_down(tree, depth + 1) + (room[1] != 0);
}

static __attribute__((noinline, optimize("optimize-sibling-calls"))) int by_tail_call(
	uint32_t tree, uint32_t depth)
{
	return by_plain_frame(tree, depth);
}

/* Two calls in one function, which differ in one return address. */
static __attribute__((noinline)) int by_either_call(uint32_t tree, uint32_t depth)
{
	int result;

	if (mixed(tree, depth) / 8 % 2)
		result = go_down(tree, depth + 1);
	else
		result = go_down(tree, depth + 1) * 2;
	__asm__ volatile("" ::: "memory");
	return result;
}

static __attribute__((noinline)) int go_down(uint32_t tree, uint32_t depth)
{
	int (*const ways[])(uint32_t, uint32_t) = { by_plain_frame, by_variable_frame,
		by_no_frame_pointer, by_tail_call, by_either_call, by_aligned_frame };
	/* Few trees have a frame that no rule describes, or all would be left to libunwind. */
	uint32_t n_ways = tree % 8 ? 5 : 6;
	int result;

	if (depth > 3 + tree % 70)
		result = take_both();
	else
		/* Trees in groups of four, which differ at one depth only. */
		result = ways[mixed(depth == tree % 11 ? tree : tree / 4, depth) % n_ways](
			tree, depth);
	__asm__ volatile("" ::: "memory");
	return result;
}

static void *take_many(void *arg)
{
	uint32_t random = *(const uint32_t *)arg;

	for (int i = 0; i < N_CAPTURES; i++) {
		random = random * 1664525u + 1013904223u;
		(void)go_down(random >> 16 & 15 ? (uint32_t)i % N_TREES : random % N_TREES, 0);
	}
	return NULL;
}

TEST(a_trail_and_a_walk_find_the_same_stack)
{
	const struct gpc_stacks_params params = {
		.sink = sink_box_sink(&box),
		.lookup_in = dlsym,
		.max_stacks = MAX_IDS - 1,
	};
	uint32_t seeds[N_WALKERS] = { 1, 2, 3 };
	pthread_t threads[N_WALKERS];

	assert_int_equal(gpc_stacks_init(&walking, &params), GPC_OK);
	gpc_trails_fini(&walking.trails);
	for (int i = 0; i < N_WALKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &seeds[i]), 0);
	for (int i = 0; i < N_WALKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(n_wrong, 0);
	assert_int_equal(n_right, N_WALKERS * N_CAPTURES);
	/* Without rules each capture walks. */
	assert_int_equal(stacks.trails.n_kept > N_TREES / 2, stacks.unwind.walk.table != NULL);
	gpc_stacks_fini(&walking);
}
