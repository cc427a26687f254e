/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that are built node by node, as XLA builds them: graphs SCENE, which prints the code of each call and what the host
 * reads afterwards.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#define BYTES 64

#define SAY(call) printf("%s: %d\n", #call, (int)(call))

static CUdeviceptr a, b;
static CUgraph graph, child;
static CUgraphExec exec;
static CUgraphNode node, inner, empty, copy;

/* The first bytes of both. */
static void look(const char *what)
{
	unsigned char of_a = 0;
	unsigned char of_b = 0;

	(void)cuCtxSynchronize();
	(void)cuMemcpyDtoH(&of_a, a, 1);
	(void)cuMemcpyDtoH(&of_b, b, 1);
	printf("%s: %u %u\n", what, of_a, of_b);
}

static void reset(void)
{
	(void)cuMemsetD8(a, 0, BYTES);
	(void)cuMemsetD8(b, 0, BYTES);
}

static void launch(void)
{
	SAY(cuGraphLaunch(exec, NULL));
	look("memory");
	reset();
}

static CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr at, unsigned int value)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = at, .value = value, .elementSize = 1, .width = BYTES, .height = 1
	};
}

static CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = BYTES,
		.Height = 1,
		.Depth = 1 };
}

static const CUDA_KERNEL_NODE_PARAMS kernel = { .v1 = { .gridDimX = 1,
							.gridDimY = 1,
							.gridDimZ = 1,
							.blockDimX = 32,
							.blockDimY = 1,
							.blockDimZ = 1 } };

static void say_type(const char *what, CUgraphNode of)
{
	CUgraphNodeType type = (CUgraphNodeType)99;
	CUresult result = cuGraphNodeGetType(of, &type);

	printf("type of %s: %d, %d\n", what, (int)result, (int)type);
}

/* fill a, empty, [fill b], kernel, copy b to a. */
static void build(void)
{
	const CUDA_MEMSET_NODE_PARAMS first = fill_of(a, 1);
	const CUDA_MEMSET_NODE_PARAMS second = fill_of(b, 2);
	const CUDA_MEMCPY3D third = copy_of(a, b);
	CUgraphNode of_kernel, of_child;
	size_t n = 0;

	SAY(cuGraphCreate(&graph, 0));
	SAY(cuGraphCreate(&child, 0));
	SAY(cuGraphGetRootNodes(child, NULL, &n));
	printf("roots of an empty graph: %zu\n", n);
	SAY(cuGraphAddMemsetNode(&node, graph, NULL, 0, &first, NULL));
	SAY(cuGraphAddEmptyNode(&empty, graph, &node, 1));
	SAY(cuGraphAddMemsetNode(&inner, child, NULL, 0, &second, NULL));
	SAY(cuGraphAddChildGraphNode(&of_child, graph, &empty, 1, child));
	SAY(cuGraphAddKernelNode_v2(&of_kernel, graph, &of_child, 1, &kernel));
	SAY(cuGraphAddMemcpyNode(&copy, graph, &of_kernel, 1, &third, NULL));
	say_type("fill", node);
	say_type("empty", empty);
	say_type("kernel", of_kernel);
	say_type("copy", copy);
	SAY(cuGraphGetNodes(child, NULL, &n));
	printf("nodes of the child: %zu\n", n);
	SAY(cuGraphGetRootNodes(child, NULL, &n));
	printf("roots of the child: %zu\n", n);
	SAY(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	launch();
	SAY(cuGraphUpload(exec, NULL));
	SAY(cuGraphExecDestroy(exec));
	SAY(cuGraphDestroy(graph));
	SAY(cuGraphDestroy(child));
}

/* The same by one function, and parameters that change later. */
static void change(void)
{
	CUgraphNodeParams one = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = fill_of(a, 3) };
	CUgraphNodeParams other = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	CUgraphNodeParams group = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUgraphNodeParams work = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel };
	CUgraphNodeParams nothing = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUDA_MEMSET_NODE_PARAMS fill = fill_of(b, 5);
	CUgraphExecUpdateResultInfo info = { .result =
						     CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED };
	CUgraphNode of_child, of_kernel, last;
	CUgraph later;

	other.memcpy.copyParams = copy_of(b, a);
	SAY(cuGraphCreate(&graph, 0));
	SAY(cuGraphCreate(&child, 0));
	SAY(cuGraphAddMemsetNode(&inner, child, NULL, 0, &fill, NULL));
	group.graph.graph = child;
	SAY(cuGraphAddNode(&node, graph, NULL, 0, &one));
	SAY(cuGraphAddNode(&copy, graph, &node, 1, &other));
	SAY(cuGraphAddNode_v2(&of_child, graph, &copy, NULL, 1, &group));
	SAY(cuGraphAddNode(&of_kernel, graph, &of_child, 1, &work));
	SAY(cuGraphAddNode(&last, graph, &of_kernel, 1, &nothing));
	SAY(cuGraphKernelNodeSetAttribute(of_kernel, 8, (const void *)&fill));
	SAY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch();
	one.memset.value = 4;
	SAY(cuGraphExecNodeSetParams(exec, node, &one));
	SAY(cuGraphExecNodeSetParams(exec, of_kernel, &work));
	fill.value = 6;
	(void)cuGraphDestroy(child);
	SAY(cuGraphCreate(&child, 0));
	SAY(cuGraphAddMemsetNode(&inner, child, NULL, 0, &fill, NULL));
	SAY(cuGraphExecChildGraphNodeSetParams(exec, of_child, child));
	launch();
	other.memcpy.copyParams = copy_of(a, b);
	SAY(cuGraphExecNodeSetParams(exec, copy, &other));
	launch();
	/* A graph of the same shape, and one of another. */
	SAY(cuGraphExecUpdate_v2(exec, graph, &info));
	printf("result: %d\n", (int)info.result);
	launch();
	SAY(cuGraphCreate(&later, 0));
	SAY(cuGraphExecUpdate_v2(exec, later, &info));
	printf("result: %d\n", (int)info.result);
}

static void call_host(void *arg)
{
	*(int *)arg += 1;
}

/* A child graph with a host function, which was captured. */
static void host(void)
{
	const CUDA_MEMSET_NODE_PARAMS fill = fill_of(b, 7);
	int n_calls = 0;
	CUstream stream;

	SAY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SAY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	SAY(cuLaunchHostFunc(stream, call_host, &n_calls));
	SAY(cuStreamEndCapture(stream, &child));
	SAY(cuGraphCreate(&graph, 0));
	SAY(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	SAY(cuGraphAddMemsetNode(&inner, graph, &node, 1, &fill, NULL));
	SAY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch();
	printf("calls: %d\n", n_calls);
}

/* Parameters of nodes, and of a launch, that are missing or none of them. */
static void misuse(void)
{
	CUDA_MEMSET_NODE_PARAMS fill = fill_of(a, 1);
	CUDA_MEMCPY3D rows = copy_of(b, a);
	CUDA_KERNEL_NODE_PARAMS no_threads = kernel;
	CUgraphNodeParams of_host = { .type = CU_GRAPH_NODE_TYPE_HOST };
	CUgraphNodeParams wrong = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUlaunchConfig no_blocks = {
		.gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
	};
	CUgraphNode of_kernel;

	SAY(cuLaunchKernelEx(NULL, NULL, NULL, NULL));
	SAY(cuLaunchKernelEx(&no_blocks, NULL, NULL, NULL));
	SAY(cuGraphCreate(NULL, 0));
	SAY(cuGraphCreate(&graph, 1));
	SAY(cuGraphCreate(&graph, 0));
	SAY(cuGraphAddMemsetNode(NULL, graph, NULL, 0, &fill, NULL));
	SAY(cuGraphAddMemsetNode(&node, NULL, NULL, 0, &fill, NULL));
	SAY(cuGraphAddMemsetNode(&node, graph, NULL, 0, NULL, NULL));
	fill.elementSize = 3;
	SAY(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
	fill.elementSize = 1;
	SAY(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, NULL, NULL));
	rows.Height = 2;
	SAY(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &rows, NULL));
	SAY(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL));
	SAY(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, NULL));
	no_threads.v1.blockDimX = 0;
	SAY(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &no_threads));
	SAY(cuGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
	SAY(cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph));
	SAY(cuGraphAddNode(&node, graph, NULL, 0, NULL));
	SAY(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, NULL));
	SAY(cuGraphAddNode(&node, graph, NULL, 0, &of_host));
	SAY(cuGraphAddNode(&node, graph, NULL, 0, &wrong));
	SAY(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
	SAY(cuGraphAddKernelNode_v2(&of_kernel, graph, NULL, 0, &kernel));
	SAY(cuGraphNodeGetType(node, NULL));
	SAY(cuGraphKernelNodeSetAttribute(of_kernel, 8, NULL));
	SAY(cuGraphGetNodes(graph, NULL, NULL));
	SAY(cuGraphGetRootNodes(graph, NULL, NULL));
	SAY(cuGraphInstantiateWithParams(&exec, NULL, NULL));
	SAY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	SAY(cuGraphExecMemsetNodeSetParams(exec, node, NULL, NULL));
	SAY(cuGraphExecMemcpyNodeSetParams(exec, node, NULL, NULL));
	SAY(cuGraphExecKernelNodeSetParams(exec, of_kernel, NULL));
	SAY(cuGraphExecKernelNodeSetParams_v2(exec, of_kernel, NULL));
	SAY(cuGraphExecKernelNodeSetParams_v2(exec, of_kernel, &no_threads));
	SAY(cuGraphExecChildGraphNodeSetParams(exec, node, NULL));
	SAY(cuGraphExecChildGraphNodeSetParams(exec, node, graph)); /* no child */
	SAY(cuGraphExecNodeSetParams(exec, node, NULL));
	SAY(cuGraphExecNodeSetParams(exec, node, &of_host));
	SAY(cuGraphExecUpdate(exec, NULL, NULL, NULL));
	SAY(cuGraphExecUpdate(exec, graph, NULL, NULL));
	SAY(cuGraphExecUpdate_v2(exec, graph, NULL));
	SAY(cuGraphLaunch(NULL, NULL));
	SAY(cuGraphUpload(NULL, NULL));
	launch();
	SAY(cuGraphDestroy(NULL));
}

static const struct {
	const char *name;
	void (*play)(void);
} scenes[] = {
	{ "build", build },
	{ "change", change },
	{ "host", host },
	{ "misuse", misuse },
};

int main(int argc, char **argv)
{
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc(&a, BYTES) || cuMemAlloc(&b, BYTES))
		return 3;
	reset();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof scenes[0]; i++)
		if (strcmp(argv[1], scenes[i].name) == 0)
			scenes[i].play();
	return 0;
}
