/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs own, on a device of 64 MiB. */
#include "tests/unit/sim/machine.h"

#include "sim/gpu/execution/graph.h"

#define SIZE (5 * GPC_MIB)
/* What the device takes for it. */
#define TAKEN (6 * GPC_MIB)

static struct gpc_sim_stream *stream;
static struct gpc_sim_graph *graph;
static uint64_t memory;

static int set_up_graph(void **state)
{
	if (set_up(state))
		return -1;
	stream = stream_create(CU_STREAM_NON_BLOCKING);
	graph = gpc_sim_graph_create();
	return graph ? 0 : -1;
}

static int tear_down_graph(void **state)
{
	gpc_sim_graph_destroy(graph);
	return tear_down(state);
}

FIXTURE(set_up_graph, tear_down_graph);

static uint64_t add_alloc(uint64_t size)
{
	struct gpc_sim_effect *node = NULL;

	assert_int_equal(
		gpc_sim_graph_block_create(&sim->devices[0], sim, size, &node), CUDA_SUCCESS);
	gpc_sim_graph_add(graph, node);
	return node->dst;
}

static void add_free(uint64_t ptr)
{
	struct gpc_sim_effect *node = NULL;

	assert_int_equal(gpc_sim_graph_block_free_node(sim, ptr, &node), CUDA_SUCCESS);
	gpc_sim_graph_add(graph, node);
}

static void launch(CUresult wanted)
{
	assert_int_equal(gpc_sim_graph_launch(graph, stream), wanted);
}

static uint64_t attribute(CUgraphMem_attribute which)
{
	uint64_t value = 0;

	assert_int_equal(gpc_sim_graph_memory_get(sim, 0, which, &value), CUDA_SUCCESS);
	return value;
}

static void assert_memory(uint64_t used, uint64_t reserved)
{
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), used);
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), reserved);
	assert_int_equal(gpc_sim_device_used_bytes(&sim->devices[0]), CONTEXT_COST + reserved);
}

TEST(a_node_takes_memory_from_its_first_launch_until_it_is_trimmed)
{
	memory = add_alloc(SIZE);
	gpc_sim_graph_add(graph, fill_of(5 * MS, memory, SIZE, 3));
	add_free(memory);
	assert_memory(0, 0);
	launch(CUDA_SUCCESS);
	assert_memory(TAKEN, TAKEN);
	gpc_sim_graph_memory_trim(sim, 0);
	assert_memory(TAKEN, TAKEN);
	pass(5 * MS);
	assert_int_equal(bytes_at(memory)[SIZE - 1], 3);
	assert_memory(0, TAKEN);
	launch(CUDA_SUCCESS);
	pass(5 * MS);
	gpc_sim_graph_memory_trim(sim, 0);
	assert_memory(0, 0);
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), TAKEN);
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), TAKEN);
}

TEST(what_one_graph_needed_serves_the_next)
{
	memory = add_alloc(SIZE);
	add_free(memory);
	launch(CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	assert_memory(0, TAKEN);
	graph = gpc_sim_graph_create();
	add_free(add_alloc(2 * SIZE));
	launch(CUDA_SUCCESS);
	assert_memory(0, 10 * GPC_MIB);
}

TEST(memory_that_the_graph_does_not_free_is_the_programs)
{
	memory = add_alloc(SIZE);
	launch(CUDA_SUCCESS);
	pass(MS);
	assert_memory(TAKEN, TAKEN);
	launch(CUDA_ERROR_INVALID_VALUE);
	busy(stream, 3 * MS);
	assert_true(gpc_sim_graph_memory_free(sim, stream, memory));
	assert_false(gpc_sim_graph_memory_free(sim, stream, memory));
	assert_memory(TAKEN, TAKEN);
	pass(3 * MS);
	assert_memory(0, TAKEN);
	launch(CUDA_SUCCESS);
	assert_true(gpc_sim_graph_memory_free(sim, NULL, memory));
	assert_memory(0, TAKEN);
	assert_false(gpc_sim_graph_memory_free(sim, NULL, memory + 512));
}

TEST(each_launch_may_free_what_the_last_one_left)
{
	graph->frees_on_launch = true;
	(void)add_alloc(SIZE);
	launch(CUDA_SUCCESS);
	launch(CUDA_SUCCESS);
	assert_memory(TAKEN, TAKEN);
}

TEST(live_memory_outlives_its_graph)
{
	memory = add_alloc(SIZE);
	launch(CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	graph = NULL;
	assert_true(gpc_sim_is_valid(sim, memory, SIZE));
	assert_memory(TAKEN, TAKEN);
	assert_true(gpc_sim_graph_memory_free(sim, NULL, memory));
	assert_false(gpc_sim_is_valid(sim, memory, SIZE));
	assert_memory(0, TAKEN);
}

TEST(the_nodes_of_each_device_take_memory_there)
{
	struct gpc_sim_effect *node = NULL;

	assert_int_equal(
		gpc_sim_graph_block_create(&sim->devices[1], sim, SIZE, &node), CUDA_SUCCESS);
	gpc_sim_graph_add(graph, node);
	(void)add_alloc(SIZE);
	launch(CUDA_SUCCESS);
	assert_memory(TAKEN, TAKEN);
	assert_int_equal(gpc_sim_device_used_bytes(&sim->devices[1]), TAKEN);
}

TEST(a_launch_on_a_full_device_is_out_of_memory_and_takes_nothing)
{
	memory = add_alloc(SIZE);
	(void)add_alloc(58 * GPC_MIB);
	launch(CUDA_ERROR_OUT_OF_MEMORY);
	assert_memory(0, 0);
	assert_false(gpc_sim_graph_memory_free(sim, NULL, memory));
}

TEST(memory_nodes_do_not_go_into_another_graph)
{
	struct gpc_sim_graph *captured = NULL;

	(void)add_alloc(SIZE);
	assert_int_equal(
		gpc_sim_capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	launch(CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_sim_capture_end(stream, &captured), CUDA_SUCCESS);
	gpc_sim_graph_destroy(captured);
	assert_memory(0, 0);
}

TEST(a_clone_holds_the_same_memory)
{
	memory = add_alloc(SIZE);
	add_free(memory);
	struct gpc_sim_graph *clone = gpc_sim_graph_clone(graph);
	assert_non_null(clone);
	gpc_sim_graph_destroy(graph);
	graph = clone;
	launch(CUDA_SUCCESS);
	assert_true(gpc_sim_is_valid(sim, memory, SIZE));
}

TEST(nodes_of_nothing_and_frees_of_nobody_are_refused)
{
	struct gpc_sim_effect *node = NULL;

	assert_int_equal(gpc_sim_graph_block_create(&sim->devices[0], sim, 0, &node),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_sim_graph_block_create(&sim->devices[0], sim, UINT64_C(1) << 40, &node),
		CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(
		gpc_sim_graph_block_free_node(sim, take(512), &node), CUDA_ERROR_INVALID_VALUE);
}

TEST(only_the_high_marks_can_be_set_and_only_to_nothing)
{
	uint64_t value = 0;

	add_free(add_alloc(SIZE));
	launch(CUDA_SUCCESS);
	gpc_sim_graph_memory_trim(sim, 0);
	for (int which = 0; which < 4; which++)
		assert_int_equal(gpc_sim_graph_memory_set(sim, 0, (CUgraphMem_attribute)which, 0),
			which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
					which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
				? CUDA_SUCCESS
				: CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0);
	assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0);
	assert_int_equal(gpc_sim_graph_memory_set(sim, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 1),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_graph_memory_get(sim, 0, (CUgraphMem_attribute)4, &value),
		CUDA_ERROR_INVALID_VALUE);
}
