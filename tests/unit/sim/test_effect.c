/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

#include <pthread.h>
#include <sched.h>

FIXTURE(set_up, tear_down);

/* A sanitizer's allocator ends the process instead of answering NULL, unless its options say otherwise. */
#if defined(__SANITIZE_ADDRESS__)
#define ALLOCATOR_OPTIONS __asan_default_options
#elif defined(__SANITIZE_THREAD__)
#define ALLOCATOR_OPTIONS __tsan_default_options
#endif
#ifdef ALLOCATOR_OPTIONS
__attribute__((visibility("default"))) const char *ALLOCATOR_OPTIONS(void);
const char *ALLOCATOR_OPTIONS(void)
{
	return "allocator_may_return_null=1";
}
#endif

/* More than any allocator gives. */
#define TOO_MUCH (UINT64_C(1) << 61)

TEST(a_memset_changes_the_bytes_when_it_ends_and_not_before)
{
	uint64_t ptr = take(512);

	submit(&context->legacy, fill_of(2 * MS, ptr + 1, 100, 7));
	assert_int_equal(bytes_at(ptr)[1], 0);
	pass(2 * MS - 1);
	assert_int_equal(bytes_at(ptr)[1], 0);
	pass(1);
	assert_int_equal(bytes_at(ptr)[0], 0);
	assert_int_equal(bytes_at(ptr)[1], 7);
	assert_int_equal(bytes_at(ptr)[100], 7);
	assert_int_equal(bytes_at(ptr)[101], 0);
}

TEST(a_copy_changes_the_bytes_when_it_ends_and_not_before)
{
	uint64_t src = take(512);
	uint64_t dst = take(512);

	memset(bytes_at(src), 3, 512);
	submit(&context->legacy, copy_of(2 * MS, dst, src, 512));
	pass(2 * MS - 1);
	assert_int_equal(bytes_at(dst)[0], 0);
	pass(1);
	assert_memory_equal(bytes_at(dst), bytes_at(src), 512);
}

TEST(nothing_is_seen_before_a_call_looks_at_the_device)
{
	uint64_t ptr = take(512);

	submit(&context->legacy, fill_of(1 * MS, ptr, 1, 7));
	gpc_sim_clock_spend(&sim->clock, 2 * MS);
	assert_int_equal(bytes_at(ptr)[0], 0);
	gpc_sim_settle(sim);
	assert_int_equal(bytes_at(ptr)[0], 7);
}

TEST(a_copy_reads_its_source_when_it_happens)
{
	char src[4] = "old";
	char dst[4] = "";

	submit(&context->legacy, copy_of(1 * MS, (uintptr_t)dst, (uintptr_t)src, 4));
	memcpy(src, "new", 4);
	pass(1 * MS);
	assert_string_equal(dst, "new");
}

TEST(a_staged_copy_has_read_its_source_already)
{
	char src[4] = "old";
	uint64_t dst = take(512);
	struct gpc_sim_effect *effect = copy_of(1 * MS, dst, (uintptr_t)src, 4);

	assert_true(gpc_sim_effect_stage(sim, effect));
	submit(&context->legacy, effect);
	memcpy(src, "new", 4);
	pass(1 * MS);
	assert_string_equal(bytes_at(dst), "old");
}

TEST(copies_and_memsets_of_rows_keep_what_lies_between_the_rows)
{
	uint64_t dst = take(512);
	struct gpc_sim_effect *fill = fill_of(0, dst, 2, '#');
	struct gpc_sim_effect *plain = copy_of(0, dst + 20, (uintptr_t) "abXcdX", 2);
	struct gpc_sim_effect *staged = copy_of(0, dst + 40, (uintptr_t) "abXcdX", 2);

	memset(bytes_at(dst), '.', 512);
	fill->rows = plain->rows = staged->rows = 2;
	fill->dst_pitch = plain->dst_pitch = staged->dst_pitch = 5;
	plain->src_pitch = staged->src_pitch = 3;
	assert_true(gpc_sim_effect_stage(sim, staged));
	submit(&context->legacy, fill);
	submit(&context->legacy, plain);
	submit(&context->legacy, staged);
	assert_memory_equal(bytes_at(dst), "##...##...", 10);
	assert_memory_equal(bytes_at(dst) + 20, "ab...cd...", 10);
	assert_memory_equal(bytes_at(dst) + 40, "ab...cd...", 10);
}

TEST(a_copy_onto_itself_is_as_if_there_were_a_place_between)
{
	uint64_t ptr = take(512);

	memcpy(bytes_at(ptr), "abcdef", 7);
	submit(&context->legacy, copy_of(0, ptr + 2, ptr, 4));
	assert_string_equal(bytes_at(ptr), "ababcd");
}

TEST(a_memset_of_wider_values_writes_whole_values_only)
{
	uint64_t ptr = take(512);
	struct gpc_sim_effect *wide = fill_of(0, ptr, 10, 0);
	struct gpc_sim_effect *narrow = fill_of(0, ptr + 16, 4, 0);

	wide->value = UINT32_C(0x04030201);
	wide->value_size = 4;
	narrow->value = UINT32_C(0x04030201);
	narrow->value_size = 2;
	submit(&context->legacy, wide);
	submit(&context->legacy, narrow);
	assert_memory_equal(bytes_at(ptr), "\1\2\3\4\1\2\3\4\0\0", 10);
	assert_memory_equal(bytes_at(ptr) + 16, "\1\2\1\2\0", 5);
}

TEST(a_kernel_writes_what_it_declared_and_leaves_what_it_only_reads)
{
	uint64_t a = take(512);
	uint64_t b = take(512);
	struct gpc_sim_effect *kernel = effect_of(GPC_SIM_EFFECT_KERNEL, 1 * MS);

	kernel->ranges = calloc(2, sizeof *kernel->ranges);
	assert_non_null(kernel->ranges);
	kernel->n_ranges = 2;
	kernel->ranges[0] = (struct gpc_sim_range){ .ptr = a, .size = 512, .fill = -1 };
	kernel->ranges[1] = (struct gpc_sim_range){ .ptr = b, .size = 10, .fill = 9 };
	submit(&context->legacy, kernel);
	assert_int_equal(bytes_at(b)[9], 0);
	pass(1 * MS);
	assert_int_equal(bytes_at(a)[0], 0);
	assert_int_equal(bytes_at(b)[9], 9);
	assert_int_equal(bytes_at(b)[10], 0);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
}

TEST(a_kernel_that_leaves_its_memory_breaks_the_context_when_it_ends)
{
	uint64_t ptr = take(512);

	submit(&context->legacy, kernel_of(1 * MS, ptr, 513, 9));
	assert_int_equal(gpc_sim_stream_query(&context->legacy), CUDA_ERROR_NOT_READY);
	pass(1 * MS);
	assert_int_equal(gpc_sim_stream_query(&context->legacy), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(bytes_at(ptr)[0], 0);
}

TEST(an_asynchronous_free_gives_the_memory_back_when_it_ends)
{
	uint64_t ptr = take(2 * GPC_MIB);
	uint64_t before = gpc_sim_device_free_bytes(context->device);
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_FREE, 0);

	effect->dst = ptr;
	busy(&context->legacy, 1 * MS);
	submit(&context->legacy, effect);
	assert_int_equal(gpc_sim_device_free_bytes(context->device), before);
	pass(1 * MS);
	assert_int_equal(gpc_sim_device_free_bytes(context->device), before + 2 * GPC_MIB);
	/* An address of the host is nobody's allocation. */
	effect = effect_of(GPC_SIM_EFFECT_FREE, 0);
	effect->dst = (uintptr_t)&before;
	submit(&context->legacy, effect);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
}

TEST(a_late_copy_lands_in_the_memory_of_the_next_owner)
{
	uint64_t ptr = take(2 * GPC_MIB);

	submit(stream_create(CU_STREAM_NON_BLOCKING), fill_of(5 * MS, ptr, 1, 7));
	/* The device does not wait here, as a broken allocator would not. */
	assert_int_equal(gpc_sim_device_free(context->device, ptr), CUDA_SUCCESS);
	assert_int_equal(take(2 * GPC_MIB), ptr);
	pass(5 * MS);
	assert_int_equal(bytes_at(ptr)[0], 7);
}

/* ---- order ---- */

#define N_MANY 300

static unsigned order[N_MANY];
static unsigned n_happened;
static unsigned numbers[N_MANY];

/* As pass, and host functions have returned. */
static void pass_all(uint64_t ns)
{
	gpc_sim_clock_spend(&sim->clock, ns);
	gpc_sim_await(sim, now());
}

static void note_number(void *arg)
{
	order[n_happened++] = *(const unsigned *)arg;
}

static struct gpc_sim_effect *note_of(uint64_t ns, unsigned number)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_HOST, ns);

	numbers[number] = number;
	effect->host = note_number;
	effect->arg = &numbers[number];
	return effect;
}

TEST(effects_happen_in_the_order_of_their_ends)
{
	static uint64_t ends[N_MANY];

	n_happened = 0;
	for (unsigned i = 0; i < N_MANY; i++) {
		struct gpc_sim_effect *effect = note_of(0, i);

		/* 101 is prime to 300: a shuffle; three of each end. */
		ends[i] = now() + 1 + i * 101 % N_MANY / 3;
		effect->end_ns = ends[i];
		effect->context = context;
		assert_true(gpc_sim_effect_submit(sim, effect));
	}
	pass_all(N_MANY / 3 / 2);
	assert_true(n_happened > N_MANY / 3 && n_happened < 2 * N_MANY / 3);
	pass_all(N_MANY / 3);
	assert_int_equal(n_happened, N_MANY);
	for (unsigned i = 1; i < N_MANY; i++) {
		assert_true(ends[order[i - 1]] <= ends[order[i]]);
		if (ends[order[i - 1]] == ends[order[i]])
			assert_true(order[i - 1] < order[i]);
	}
}

TEST(of_two_streams_the_work_that_ends_first_happens_first)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_NON_BLOCKING);

	n_happened = 0;
	submit(a, note_of(10 * MS, 0));
	submit(b, note_of(3 * MS, 1));
	submit(b, note_of(3 * MS, 2));
	submit(b, note_of(4 * MS, 3)); /* ends with number 0, submitted later */
	pass_all(100 * MS);
	assert_int_equal(n_happened, 4);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[2], 0);
	assert_int_equal(order[3], 3);
}

/* ---- host functions ---- */

struct look {
	char seen;
	uint64_t ptr;
};

static bool was_inside;

static void look_around(void *arg)
{
	struct look *look = arg;

	was_inside = gpc_sim_in_host_function();
	gpc_sim_clock_spend(&sim->clock, 10 * MS);
	gpc_sim_settle(sim);
	look->seen = bytes_at(look->ptr)[0];
}

TEST(inside_a_host_function_nothing_else_happens)
{
	uint64_t ptr = take(512);
	struct look arg = { .seen = 42, .ptr = ptr };
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_HOST, 1 * MS);

	effect->host = look_around;
	effect->arg = &arg;
	submit(&context->legacy, effect);
	submit(&context->legacy, fill_of(1 * MS, ptr, 1, 7));
	assert_false(gpc_sim_in_host_function());
	pass_all(1 * MS);
	assert_true(was_inside);
	assert_false(gpc_sim_in_host_function());
	assert_int_equal(arg.seen, 0);
	gpc_sim_settle(sim);
	assert_int_equal(bytes_at(ptr)[0], 7);
}

static _Atomic bool may_return;

static void wait_for_host(void *arg)
{
	while (!atomic_load(&may_return))
		sched_yield();
}

/* It may wait for the thread that submitted it, which goes on. */
TEST(a_host_function_keeps_nobody_else_waiting_but_what_is_behind_it)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *before = event_create();
	struct gpc_sim_event *behind = event_create();
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_HOST, 1);
	uint64_t ptr = take(512);

	atomic_store(&may_return, false);
	effect->host = wait_for_host;
	submit(stream, fill_of(1 * MS, ptr, 1, 1));
	assert_int_equal(gpc_sim_stream_record(stream, before), CUDA_SUCCESS);
	submit(stream, effect);
	assert_int_equal(gpc_sim_stream_record(stream, behind), CUDA_SUCCESS);
	submit(stream, fill_of(1 * MS, ptr, 1, 2));
	pass(50 * MS);
	assert_int_equal(gpc_sim_event_sync(before), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(behind), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_sim_stream_query(stream), CUDA_ERROR_NOT_READY);
	assert_int_equal(bytes_at(ptr)[0], 1);
	atomic_store(&may_return, true);
	assert_int_equal(gpc_sim_stream_sync(stream), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(behind), CUDA_SUCCESS);
	assert_int_equal(bytes_at(ptr)[0], 2);
}

static _Atomic bool has_begun;
static bool has_ended; /* not atomic: what is waited for must be visible */

static void take_long(void *arg)
{
	atomic_store(&has_begun, true);
	gpc_sim_clock_wait_until(
		&(struct gpc_sim_clock){ .is_virtual = false }, gpc_clock_monotonic_ns() + 20 * MS);
	has_ended = true;
}

static void *settle(void *arg)
{
	gpc_sim_settle(arg);
	return NULL;
}

TEST(a_thread_that_waits_finds_done_what_another_thread_is_doing)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_HOST, 1 * MS);
	pthread_t thread;

	atomic_store(&has_begun, false);
	has_ended = false;
	effect->host = take_long;
	submit(&context->legacy, effect);
	gpc_sim_clock_spend(&sim->clock, 1 * MS);
	assert_int_equal(pthread_create(&thread, NULL, settle, sim), 0);
	while (!atomic_load(&has_begun))
		;
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_true(has_ended);
	pthread_join(thread, NULL);
}

/* ---- clones and memory ---- */

TEST(a_clone_owns_what_the_original_owned)
{
	uint64_t dst = take(512);
	struct gpc_sim_effect *copy = copy_of(0, dst, (uintptr_t) "abXcdX", 2);
	struct gpc_sim_effect *kernel = kernel_of(0, dst + 256, 4, 5);

	copy->rows = 2;
	copy->src_pitch = 3;
	copy->dst_pitch = 2;
	assert_true(gpc_sim_effect_stage(sim, copy));
	copy->next = kernel;
	struct gpc_sim_effect *copy_clone = gpc_sim_effect_clone(copy);
	struct gpc_sim_effect *kernel_clone = gpc_sim_effect_clone(kernel);
	assert_non_null(copy_clone);
	assert_non_null(kernel_clone);
	assert_null(copy_clone->next);
	assert_ptr_not_equal(copy_clone->staged, copy->staged);
	assert_ptr_not_equal(kernel_clone->ranges, kernel->ranges);
	gpc_sim_effect_destroy(copy);
	gpc_sim_effect_destroy(kernel);
	submit(&context->legacy, copy_clone);
	submit(&context->legacy, kernel_clone);
	assert_string_equal(bytes_at(dst), "abcd");
	assert_memory_equal(bytes_at(dst) + 256, "\5\5\5\5", 5);
}

TEST(bytes_that_no_memory_holds_are_not_staged_and_not_cloned)
{
	struct gpc_sim_effect *effect = copy_of(0, 0, 0, TOO_MUCH);

	assert_false(gpc_sim_effect_stage(sim, effect));
	assert_null(effect->staged);
	effect->staged = malloc(1);
	assert_null(gpc_sim_effect_clone(effect));
	gpc_sim_effect_destroy(effect);
	gpc_sim_effect_destroy(NULL);
}
