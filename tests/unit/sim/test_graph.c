/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/capturing.h"

FIXTURE(set_up, tear_down);

TEST(a_graph_runs_its_nodes_one_after_another_in_any_stream)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *runner = stream_create(CU_STREAM_NON_BLOCKING);

	submit(stream, fill_of(2 * MS, ptr, 1, 1));
	submit(stream, fill_of(3 * MS, ptr, 1, 2));
	end(stream);
	busy(runner, 1 * MS);
	assert_int_equal(gpc_sim_graph_launch(graph, runner), CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph); /* as the driver does, it may go before its work is done */
	pass(3 * MS);
	assert_int_equal(bytes_at(ptr)[0], 1);
	pass(3 * MS - 1);
	assert_int_equal(bytes_at(ptr)[0], 1);
	pass(1);
	assert_int_equal(bytes_at(ptr)[0], 2);
}

TEST(a_clone_of_a_graph_outlives_it)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	submit(stream, kernel_of(1 * MS, ptr, 4, 6));
	busy(stream, 1 * MS);
	struct gpc_sim_graph *clone = gpc_sim_graph_clone(end(stream));
	assert_non_null(clone);
	assert_int_equal(clone->n_nodes, 2);
	gpc_sim_graph_destroy(graph);
	assert_int_equal(gpc_sim_graph_launch(clone, stream), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_sync(stream), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 2 * MS);
	assert_int_equal(bytes_at(ptr)[3], 6);
	gpc_sim_graph_destroy(clone);
}

TEST(an_empty_graph_is_a_graph)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	assert_int_equal(end(stream)->n_nodes, 0);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_query(stream), CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	gpc_sim_graph_destroy(NULL);
}

TEST(a_graph_launched_into_a_captured_stream_becomes_part_of_the_new_graph)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	busy(stream, 1 * MS);
	busy(stream, 1 * MS);
	struct gpc_sim_graph *inner = end(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, GLOBAL), CUDA_SUCCESS);
	busy(stream, 1 * MS);
	assert_int_equal(gpc_sim_graph_launch(inner, stream), CUDA_SUCCESS);
	assert_int_equal(end(stream)->n_nodes, 3);
	gpc_sim_graph_destroy(graph);
	gpc_sim_graph_destroy(inner);
}

TEST(a_capture_into_a_graph_adds_to_what_it_has)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	busy(stream, 1 * MS);
	struct gpc_sim_graph *first = end(stream);
	assert_int_equal(gpc_sim_capture_begin_in(stream, GLOBAL, first), CUDA_SUCCESS);
	busy(stream, 1 * MS);
	assert_ptr_equal(end(stream), first);
	assert_int_equal(first->n_nodes, 2);
	/* A capture that ends badly leaves the graph to its owner. */
	assert_int_equal(gpc_sim_capture_begin_in(stream, GLOBAL, first), CUDA_SUCCESS);
	gpc_sim_capture_drop(stream);
	assert_int_equal(first->n_nodes, 2);
	gpc_sim_graph_destroy(first);
}

TEST(a_graph_cannot_be_launched_where_work_cannot_be_submitted)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	busy(stream, 1 * MS);
	end(stream);
	gpc_sim_context_break(context, CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_ERROR_ASSERT);
	gpc_sim_graph_destroy(graph);
}

/* Memory that only this device may access. */
static uint64_t memory_of(int device)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
	const CUmemAccessDesc desc = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	uint64_t ptr = 0;
	uint64_t handle = 0;

	assert_int_equal(gpc_sim_vmm_create(sim, 2 * GPC_MIB, &prop, &handle), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_vmm_reserve(&sim->vmm, 2 * GPC_MIB, 0, &ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_vmm_map(sim, ptr, 2 * GPC_MIB, handle), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_vmm_set_access(sim, ptr, 2 * GPC_MIB, &desc), CUDA_SUCCESS);
	return ptr;
}

TEST(a_node_runs_on_the_device_that_it_was_captured_on)
{
	uint64_t ptr = memory_of(1);
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_in(other, CU_STREAM_NON_BLOCKING);

	join(stream, joined);
	submit(joined, kernel_of(2 * MS, ptr, 4, 7));
	busy(stream, 3 * MS);
	end(stream);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_SUCCESS);
	/* Both devices are busy with it: the other one until its own node is done. */
	assert_int_equal(gpc_sim_context_sync(other), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 2 * MS);
	assert_int_equal(bytes_at(ptr)[3], 7);
	assert_int_equal(time_to_sync(), 3 * MS);
	gpc_sim_graph_destroy(graph);
	gpc_sim_context_destroy(other);
}

TEST(a_node_that_goes_wrong_breaks_its_own_device)
{
	uint64_t ptr = memory_of(0);
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_in(other, CU_STREAM_NON_BLOCKING);

	join(stream, joined);
	submit(joined, kernel_of(1 * MS, ptr, 4, 7));
	end(stream);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_sync(other), CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_sim_graph_destroy(graph);
	gpc_sim_context_destroy(other);
}

TEST(a_graph_of_a_context_that_has_ended_is_not_launched)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_in(other, CU_STREAM_NON_BLOCKING);

	join(stream, joined);
	busy(joined, 1 * MS);
	end(stream);
	gpc_sim_context_destroy(other);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	gpc_sim_graph_destroy(graph);
}
