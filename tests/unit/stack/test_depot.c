/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <pthread.h>

#include "base/metamem.h"
#include "stack/depot.h"
#include "stack/sink_box.h"

#define N_THREADS 4
#define N_STACKS  2000

static struct sink_box box;

static int setup(void **state)
{
	sink_box_clear(&box);
	gpc_metamem_fail_at(0);
	return 0;
}

FIXTURE(setup, NULL);

static void open_depot(struct gpc_depot *depot, uint32_t max_stacks)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);

	assert_int_equal(gpc_depot_init(depot, max_stacks, &sink), GPC_OK);
}

/* Stack number i: some native frames, some Python frames, all different from those of other i. */
static struct gpc_raw_stack make_stack(uint64_t *frames, uint32_t i)
{
	struct gpc_raw_stack stack = {
		.frames = frames,
		.n_native = (uint16_t)(1 + i % 7),
		.n_python = (uint16_t)(i % 3),
	};

	for (uint32_t k = 0; k < (uint32_t)stack.n_native + stack.n_python; k++)
		frames[k] = (uint64_t)i * 1000 + k;
	return stack;
}

TEST(the_same_frames_get_the_same_id_and_one_record)
{
	uint64_t frames[16], again[16];
	struct gpc_raw_stack stack = make_stack(frames, 5), copy = make_stack(again, 5);
	struct gpc_depot depot;
	const struct gpucache_stack *record;
	bool is_new;

	open_depot(&depot, 16);
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 1);
	assert_true(is_new);
	assert_int_equal(gpc_depot_put(&depot, &copy, &is_new), 1);
	assert_false(is_new);
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], 1);
	record = sink_box_next(&box, GPUCACHE_REGION_STACKS, NULL);
	assert_int_equal(record->id, 1);
	assert_int_equal(record->n_native, 6);
	assert_int_equal(record->n_python, 2);
	assert_int_equal(record->size, sizeof(*record) + 8 * 8);
	assert_memory_equal(record + 1, frames, 64);
	gpc_depot_fini(&depot);
}

TEST(stacks_that_differ_in_one_frame_or_flag_or_kind_get_ids_of_their_own)
{
	uint64_t frames[8] = { 1, 2, 3, 4 }, other[8] = { 1, 2, 3, 5 };
	struct gpc_raw_stack a = { frames, 4, 0, 0 }, b = { other, 4, 0, 0 };
	struct gpc_raw_stack c = { frames, 3, 1, 0 }, d = { frames, 4, 0, GPUCACHE_STACK_CUT };
	struct gpc_raw_stack e = { frames, 3, 0, 0 };
	struct gpc_depot depot;
	bool is_new;

	open_depot(&depot, 16);
	assert_int_equal(gpc_depot_put(&depot, &a, &is_new), 1);
	assert_int_equal(gpc_depot_put(&depot, &b, &is_new), 2);
	assert_int_equal(gpc_depot_put(&depot, &c, &is_new), 3);
	assert_int_equal(gpc_depot_put(&depot, &d, &is_new), 4);
	assert_int_equal(gpc_depot_put(&depot, &e, &is_new), 5);
	assert_int_equal(gpc_depot_put(&depot, &a, &is_new), 1);
	gpc_depot_fini(&depot);
}

TEST(find_gives_back_what_was_put)
{
	uint64_t frames[16];
	struct gpc_raw_stack stack, found;
	struct gpc_depot depot;
	bool is_new;

	open_depot(&depot, N_STACKS);
	for (uint32_t i = 0; i < N_STACKS; i++) {
		stack = make_stack(frames, i);
		assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), i + 1);
	}
	for (uint32_t i = 0; i < N_STACKS; i++) {
		stack = make_stack(frames, i);
		assert_true(gpc_depot_find(&depot, i + 1, &found));
		assert_int_equal(found.n_native, stack.n_native);
		assert_int_equal(found.n_python, stack.n_python);
		assert_memory_equal(found.frames, frames, 8u * (stack.n_native + stack.n_python));
	}
	assert_false(gpc_depot_find(&depot, 0, &found));
	assert_false(gpc_depot_find(&depot, N_STACKS + 1, &found));
	gpc_depot_fini(&depot);
}

TEST(a_full_depot_counts_what_it_drops_and_still_knows_the_rest)
{
	uint64_t frames[16];
	struct gpc_raw_stack stack;
	struct gpc_depot depot;
	bool is_new;

	open_depot(&depot, 3);
	for (uint32_t i = 0; i < 10; i++) {
		stack = make_stack(frames, i);
		assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), i < 3 ? i + 1 : 0);
		assert_int_equal(is_new, i < 3);
	}
	assert_int_equal(depot.n_dropped, 7);
	stack = make_stack(frames, 2);
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 3);
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], 3);
	gpc_depot_fini(&depot);
}

TEST(a_depot_whose_frames_find_no_room_closes)
{
	uint64_t frames[256] = { 0 };
	struct gpc_raw_stack stack = { .frames = frames, .n_native = 256 };
	struct gpc_depot depot;
	bool is_new;

	open_depot(&depot, 8);
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 1);
	frames[0] = 1;
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 0);
	assert_true(depot.intern.is_closed);
	assert_int_equal(depot.n_dropped, 1);
	gpc_depot_fini(&depot);
}

TEST(a_stack_that_the_sink_refuses_has_no_id)
{
	uint64_t frames[16];
	struct gpc_raw_stack stack = make_stack(frames, 1), found;
	struct gpc_depot depot;
	bool is_new;

	open_depot(&depot, 16);
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 1);
	box.refuses = true;
	stack = make_stack(frames, 2);
	assert_int_equal(gpc_depot_put(&depot, &stack, &is_new), 0);
	assert_false(is_new);
	assert_false(gpc_depot_find(&depot, 2, &found));
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], 1);
	gpc_depot_fini(&depot);
}

TEST(without_memory_there_is_no_depot)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);
	size_t before = gpc_metamem_total();
	struct gpc_depot depot;

	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_depot_init(&depot, 16, &sink), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_int_equal(gpc_metamem_total(), before);
	open_depot(&depot, 16);
	gpc_depot_fini(&depot);
	gpc_depot_fini(&depot);
	assert_int_equal(gpc_metamem_total(), before);
}

struct worker {
	pthread_t thread;
	struct gpc_depot *depot;
	uint32_t first;
	uint32_t ids[N_STACKS];
	uint32_t n_new;
	uint32_t n_wrong;
};

static void *put_all(void *arg)
{
	struct worker *worker = arg;
	struct gpc_raw_stack stack, found;
	uint64_t frames[16];
	bool is_new;

	for (uint32_t k = 0; k < 2 * N_STACKS; k++) {
		uint32_t i = (worker->first + k * 7) % N_STACKS;
		uint32_t id;

		stack = make_stack(frames, i);
		id = gpc_depot_put(worker->depot, &stack, &is_new);
		worker->n_new += is_new;
		if (worker->ids[i] && worker->ids[i] != id)
			worker->n_wrong++;
		worker->ids[i] = id;
		if (!gpc_depot_find(worker->depot, id, &found) ||
			memcmp(found.frames, frames, 8u * (stack.n_native + stack.n_python)) != 0)
			worker->n_wrong++;
	}
	return NULL;
}

TEST(threads_that_put_the_same_stacks_agree_on_their_ids)
{
	static struct worker workers[N_THREADS];
	struct gpc_depot depot;
	uint32_t n_new = 0;

	open_depot(&depot, N_STACKS);
	for (uint32_t t = 0; t < N_THREADS; t++) {
		workers[t] = (struct worker){ .depot = &depot, .first = t * 500 };
		assert_int_equal(pthread_create(&workers[t].thread, NULL, put_all, &workers[t]), 0);
	}
	for (uint32_t t = 0; t < N_THREADS; t++)
		assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
	for (uint32_t t = 0; t < N_THREADS; t++) {
		assert_int_equal(workers[t].n_wrong, 0);
		assert_memory_equal(workers[t].ids, workers[0].ids, sizeof(workers[0].ids));
		n_new += workers[t].n_new;
	}
	assert_int_equal(n_new, N_STACKS);
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], N_STACKS);
	assert_int_equal(depot.n_dropped, 0);
	gpc_depot_fini(&depot);
}
