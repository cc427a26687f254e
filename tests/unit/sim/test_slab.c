/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs over a device of 64 MiB: who may have which piece, and what goes back. */
#include "tests/unit/sim/machine.h"

#include "sim/gpu/memory/slab.h"

static struct gpc_sim_slabs slabs;

static int set_up_slabs(void **state)
{
	if (set_up(state))
		return -1;
	gpc_sim_slabs_init(&slabs, &sim->devices[0], 0);
	return 0;
}

static int tear_down_slabs(void **state)
{
	gpc_sim_slabs_clear(&slabs);
	return tear_down(state);
}

FIXTURE(set_up_slabs, tear_down_slabs);

static struct gpc_sim_piece *piece_of(uint64_t size, uint64_t stream)
{
	struct gpc_sim_piece *piece = gpc_sim_slabs_take(&slabs, size, stream);

	assert_non_null(piece);
	assert_int_equal(piece->size, size);
	return piece;
}

static void free_on(struct gpc_sim_piece *piece, uint64_t number, uint64_t stream)
{
	piece->state = GPC_SIM_PIECE_FREED;
	piece->free_number = number;
	piece->free_stream = stream;
}

TEST(a_slab_is_cut_from_its_front)
{
	assert_null(gpc_sim_slabs_take(&slabs, 512, 1));
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	assert_int_equal(slabs.reserved, GPC_SIM_SLAB);
	const struct gpc_sim_piece *a = piece_of(512, 1);
	const struct gpc_sim_piece *b = piece_of(GPC_SIM_SLAB - 512, 1);
	assert_int_equal(b->ptr, a->ptr + 512);
	assert_null(gpc_sim_slabs_take(&slabs, 512, 1));
	assert_ptr_equal(gpc_sim_slabs_find(&slabs, a->ptr + 511), a);
	assert_ptr_equal(gpc_sim_slabs_find(&slabs, a->ptr + 512), b);
	assert_null(gpc_sim_slabs_find(&slabs, a->ptr + GPC_SIM_SLAB));
}

TEST(where_no_whole_slab_fits_one_as_large_as_needed_is_made)
{
	/* 64 MiB less the context's: one slab fits, and 28 MiB more. */
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 3 * GPC_MIB), CUDA_SUCCESS);
	assert_int_equal(slabs.reserved, GPC_SIM_SLAB + 4 * GPC_MIB);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 26 * GPC_MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(no_more_than_the_most_is_reserved)
{
	slabs.max = 10 * GPC_MIB;
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 8 * GPC_MIB), CUDA_SUCCESS);
	assert_int_equal(slabs.reserved, 8 * GPC_MIB);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 4 * GPC_MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(what_a_stream_freed_only_that_stream_may_have_until_it_is_over)
{
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	struct gpc_sim_piece *whole = piece_of(GPC_SIM_SLAB, 1);
	free_on(whole, 7, 1);
	assert_null(gpc_sim_slabs_find(&slabs, whole->ptr));
	assert_true(gpc_sim_slabs_have(&slabs, whole->ptr));
	assert_null(gpc_sim_slabs_take(&slabs, 512, 2));
	/* The rest of what it takes again is still under way. */
	(void)piece_of(512, 1);
	assert_null(gpc_sim_slabs_take(&slabs, 512, 2));
	gpc_sim_slabs_finish(&slabs, 8);
	assert_null(gpc_sim_slabs_take(&slabs, 512, 2));
	gpc_sim_slabs_finish(&slabs, 7);
	(void)piece_of(GPC_SIM_SLAB - 512, 2);
}

TEST(free_neighbours_become_one)
{
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	struct gpc_sim_piece *a = piece_of(1024, 1);
	struct gpc_sim_piece *b = piece_of(1024, 1);
	struct gpc_sim_piece *c = piece_of(1024, 1);
	gpc_sim_piece_free(a);
	gpc_sim_piece_free(c);
	assert_false(gpc_sim_slabs_are_idle(&slabs));
	gpc_sim_piece_free(b);
	assert_true(gpc_sim_slabs_are_idle(&slabs));
	(void)piece_of(GPC_SIM_SLAB, 1);
}

TEST(several_pieces_of_one_free_end_together)
{
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	free_on(piece_of(GPC_SIM_SLAB, 1), 3, 1);
	struct gpc_sim_piece *a = piece_of(1024, 1);
	free_on(piece_of(1024, 1), 4, 1);
	gpc_sim_piece_free(a);
	gpc_sim_slabs_finish(&slabs, 3);
	gpc_sim_slabs_finish(&slabs, 4);
	assert_true(gpc_sim_slabs_are_idle(&slabs));
}

TEST(only_idle_slabs_go_back_and_never_more_than_asked)
{
	uint64_t before = gpc_sim_device_used_bytes(&sim->devices[0]);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	struct gpc_sim_piece *piece = piece_of(512, 1);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 3 * GPC_MIB), CUDA_SUCCESS);
	gpc_sim_slabs_trim(&slabs, 33 * GPC_MIB);
	assert_int_equal(slabs.reserved, GPC_SIM_SLAB + 4 * GPC_MIB);
	gpc_sim_slabs_trim(&slabs, 0);
	assert_int_equal(slabs.reserved, GPC_SIM_SLAB);
	gpc_sim_piece_free(piece);
	gpc_sim_slabs_trim(&slabs, UINT64_MAX);
	assert_int_equal(slabs.reserved, GPC_SIM_SLAB);
	gpc_sim_slabs_trim(&slabs, 0);
	assert_int_equal(slabs.reserved, 0);
	assert_int_equal(gpc_sim_device_used_bytes(&sim->devices[0]), before);
}

TEST(memory_of_the_host_costs_the_device_nothing)
{
	uint64_t before = gpc_sim_device_used_bytes(&sim->devices[0]);
	slabs.device = NULL;
	assert_int_equal(gpc_sim_slabs_grow(&slabs, 512), CUDA_SUCCESS);
	memset((void *)(uintptr_t)piece_of(512, 1)->ptr, 1, 512);
	assert_int_equal(gpc_sim_device_used_bytes(&sim->devices[0]), before);
	assert_int_equal(gpc_sim_slabs_grow(&slabs, UINT64_C(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
}
