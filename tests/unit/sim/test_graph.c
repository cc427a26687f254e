/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/capturing.h"

static void a_graph_runs_its_nodes_one_after_another_in_any_stream(void **state)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *runner = stream_create(CU_STREAM_NON_BLOCKING);

	(void)state;
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

static void a_clone_of_a_graph_outlives_it(void **state)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	(void)state;
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

static void an_empty_graph_is_a_graph(void **state)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	(void)state;
	assert_int_equal(end(stream)->n_nodes, 0);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_query(stream), CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	gpc_sim_graph_destroy(NULL);
}

static void a_graph_launched_into_a_captured_stream_becomes_part_of_the_new_graph(void **state)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	(void)state;
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

static void a_graph_cannot_be_launched_where_work_cannot_be_submitted(void **state)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	(void)state;
	busy(stream, 1 * MS);
	end(stream);
	gpc_sim_context_break(context, CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_ERROR_ASSERT);
	gpc_sim_graph_destroy(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_graph_runs_its_nodes_one_after_another_in_any_stream),
		TEST(a_clone_of_a_graph_outlives_it),
		TEST(an_empty_graph_is_a_graph),
		TEST(a_graph_launched_into_a_captured_stream_becomes_part_of_the_new_graph),
		TEST(a_graph_cannot_be_launched_where_work_cannot_be_submitted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
