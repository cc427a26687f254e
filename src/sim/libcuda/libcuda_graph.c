/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: graphs, whether captured or built node by node, as XLA does.
 *
 * A graph is a list of nodes (sim/gpu/execution/graph.h): the edges between them are ignored.  A child graph is an empty node, whose
 * handle stands for it, and clones of the child's nodes behind it:
 *
 *      [ kernel ] --> [ empty ] --> [ kernel ] --> [ copy ] --> [ fill ]
 *                     child graph   '---- the child's ----'
 *
 * An executable graph has clones of its graph's nodes, those of a child graph included, by number.
 */
#include "sim/gpu/execution/graph.h"

#include "sim/libcuda/face.h"

static struct gpc_sim_graph *of(const void *handle)
{
	return (struct gpc_sim_graph *)(uintptr_t)handle;
}

static struct gpc_sim_effect *node_of(CUgraphNode node)
{
	return (struct gpc_sim_effect *)(void *)node;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	struct gpc_sim_graph *made;
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphCreate", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	made = gpc_sim_graph_create();
	*graph = (CUgraph)(void *)made;
	return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphDestroy", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_sim_graph_destroy(of(graph));
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	if (!graph || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodes)
		return CUDA_ERROR_NOT_SUPPORTED;
	*n = of(graph)->n_nodes;
	return CUDA_SUCCESS;
}

/* Edges are not kept: only that there is a root, by which XLA knows that what it captured is not empty. */
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	CUresult res = cuGraphGetNodes(graph, nodes, n);

	if (res == CUDA_SUCCESS)
		*n = *n > 0;
	return res;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	struct gpc_sim_context *context;
	struct gpc_sim_graph *made;
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphInstantiateWithFlags", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	made = gpc_sim_graph_clone(of(graph));
	if (made)
		made->frees_on_launch = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	*exec = (CUgraphExec)(void *)made;
	return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphInstantiate_v2(
	CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *text, size_t size)
{
	if (error)
		*error = NULL;
	if (text && size)
		*text = '\0';
	return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate(
	CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *text, size_t size)
{
	return cuGraphInstantiate_v2(exec, graph, error, text, size);
}

FACE_PAIR(cuGraphInstantiateWithParams, _ptsz,
	(CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	((void)entry, (void)null,
		cuGraphInstantiateWithFlags(exec, graph, params ? params->flags : 0)))

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphExecDestroy", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_graph_destroy(of(exec));
	return CUDA_SUCCESS;
}

static CUresult graph_launch(
	const char *entry, enum face_null null, CUstream handle, CUgraphExec exec)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	face_note_graph();
	return gpc_sim_graph_launch(of(exec), stream);
}

FACE_PAIR(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream s), graph_launch(entry, null, s, exec))
FACE_PAIR(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream s),
	((void)entry, (void)null, exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))

/* ---- nodes ---- */

#define DEPENDENCIES const CUgraphNode *dependencies, size_t n

/* Appends a node of this shape; NULL: the parameters are none of a node. */
static CUresult add(
	const char *entry, CUgraphNode *node, CUgraph graph, const struct gpc_sim_effect *shape)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, entry, NULL);
	struct gpc_sim_effect *made;

	if (res != CUDA_SUCCESS)
		return res;
	if (!node || !graph || !shape)
		return CUDA_ERROR_INVALID_VALUE;
	made = gpc_sim_effect_clone(shape);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gpc_sim_graph_add(of(graph), made);
	*node = (CUgraphNode)(void *)made;
	return CUDA_SUCCESS;
}

/* Gives the copy of this node in `exec` this shape; NULL: as in add. */
static CUresult set(
	const char *entry, CUgraphExec exec, CUgraphNode node, const struct gpc_sim_effect *shape)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!exec || !node || !shape)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_sim_graph_replace(gpc_sim_graph_find(of(exec), node_of(node)->number), shape);
}

/* The shape of a node with these parameters, in *room; NULL: they are none of a node. */
static const struct gpc_sim_effect *shape_of_kernel(
	const CUDA_KERNEL_NODE_PARAMS_v1 *p, struct gpc_sim_effect *room)
{
	if (!p || !p->gridDimX || !p->gridDimY || !p->gridDimZ || !p->blockDimX || !p->blockDimY ||
		!p->blockDimZ)
		return NULL;
	*room = (struct gpc_sim_effect){ .kind = GPC_SIM_EFFECT_KERNEL };
	return room;
}

/* One row of bytes between addresses: no more is simulated. */
static const struct gpc_sim_effect *shape_of_copy(
	const CUDA_MEMCPY3D *p, struct gpc_sim_effect *room)
{
	if (!p || p->Height > 1 || p->Depth > 1 || p->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
		p->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return NULL;
	*room = (struct gpc_sim_effect){
		.kind = GPC_SIM_EFFECT_COPY,
		.src = p->srcXInBytes + (p->srcMemoryType == CU_MEMORYTYPE_HOST
							? (uintptr_t)p->srcHost
							: p->srcDevice),
		.dst = p->dstXInBytes + (p->dstMemoryType == CU_MEMORYTYPE_HOST
							? (uintptr_t)p->dstHost
							: p->dstDevice),
		.width = p->WidthInBytes,
		.rows = 1,
	};
	return room;
}

static const struct gpc_sim_effect *shape_of_fill(
	const CUDA_MEMSET_NODE_PARAMS *p, struct gpc_sim_effect *room)
{
	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return NULL;
	*room = (struct gpc_sim_effect){
		.kind = GPC_SIM_EFFECT_FILL,
		.dst = p->dst,
		.dst_pitch = p->pitch,
		.width = p->width * p->elementSize,
		.rows = p->height,
		.value = p->value,
		.value_size = p->elementSize,
	};
	return room;
}

CUresult cuGraphAddKernelNode(
	CUgraphNode *node, CUgraph graph, DEPENDENCIES, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	struct gpc_sim_effect room;

	return add("cuGraphAddKernelNode", node, graph, shape_of_kernel(params, &room));
}

/* The parameters of the second version begin like those of the first. */
CUresult cuGraphAddKernelNode_v2(
	CUgraphNode *node, CUgraph graph, DEPENDENCIES, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return cuGraphAddKernelNode(node, graph, dependencies, n, params ? &params->v1 : NULL);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, DEPENDENCIES,
	const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct gpc_sim_effect room;

	return add("cuGraphAddMemcpyNode", node, graph, shape_of_copy(params, &room));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, DEPENDENCIES,
	const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	struct gpc_sim_effect room;

	return add("cuGraphAddMemsetNode", node, graph, shape_of_fill(params, &room));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, DEPENDENCIES)
{
	const struct gpc_sim_effect shape = { .kind = GPC_SIM_EFFECT_NONE };

	return add("cuGraphAddEmptyNode", node, graph, &shape);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, DEPENDENCIES, CUgraph child)
{
	CUresult res = child && child != graph ? cuGraphAddEmptyNode(node, graph, dependencies, n)
					       : CUDA_ERROR_INVALID_VALUE;
	CUgraphNode inner;

	for (const struct gpc_sim_effect *at = child ? of(child)->first : NULL;
		at && res == CUDA_SUCCESS; at = at->next)
		res = at->block ? CUDA_ERROR_NOT_SUPPORTED
				: add("cuGraphAddChildGraphNode", &inner, graph, at);
	return res;
}

CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	struct gpc_sim_effect room;

	return set("cuGraphExecKernelNodeSetParams", exec, node, shape_of_kernel(params, &room));
}

CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return cuGraphExecKernelNodeSetParams(exec, node, params ? &params->v1 : NULL);
}

CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct gpc_sim_effect room;

	return set("cuGraphExecMemcpyNodeSetParams", exec, node, shape_of_copy(params, &room));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
	const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	struct gpc_sim_effect room;

	return set("cuGraphExecMemsetNodeSetParams", exec, node, shape_of_fill(params, &room));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphExecChildGraphNodeSetParams", NULL);
	const struct gpc_sim_effect *own;

	if (res != CUDA_SUCCESS)
		return res;
	if (!exec || !node || !child)
		return CUDA_ERROR_INVALID_VALUE;
	own = gpc_sim_graph_find(of(exec), node_of(node)->number);
	if (!own || own->kind != GPC_SIM_EFFECT_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_sim_graph_replace(own->next, of(child)->first);
}

CUresult cuGraphExecUpdate(
	CUgraphExec exec, CUgraph graph, CUgraphNode *error, CUgraphExecUpdateResult *result)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphExecUpdate", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	res = of(exec)->n_nodes == of(graph)->n_nodes
		      ? gpc_sim_graph_replace(of(exec)->first, of(graph)->first)
		      : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	if (error)
		*error = NULL;
	if (result)
		*result = res == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
					      : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	return res;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	info->errorFromNode = NULL;
	return cuGraphExecUpdate(exec, graph, &info->errorNode, &info->result);
}

/* ---- the same by one function, since CUDA 12.2 ---- */

CUresult cuGraphAddNode(
	CUgraphNode *node, CUgraph graph, DEPENDENCIES, const CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphAddKernelNode(node, graph, dependencies, n, &params->kernel.v1);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphAddMemcpyNode(
			node, graph, dependencies, n, &params->memcpy.copyParams, NULL);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuGraphAddMemsetNode(node, graph, dependencies, n, &params->memset, NULL);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return cuGraphAddChildGraphNode(node, graph, dependencies, n, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return cuGraphAddEmptyNode(node, graph, dependencies, n);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *edges, size_t n, const CUgraphNodeParams *params)
{
	return cuGraphAddNode(node, graph, dependencies, n, params);
}

CUresult cuGraphExecNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphExecKernelNodeSetParams(exec, node, &params->kernel.v1);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphExecMemcpyNodeSetParams(exec, node, &params->memcpy.copyParams, NULL);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuGraphExecMemsetNodeSetParams(exec, node, &params->memset, NULL);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	static const CUgraphNodeType types[] = {
		[GPC_SIM_EFFECT_NONE] = CU_GRAPH_NODE_TYPE_EMPTY,
		[GPC_SIM_EFFECT_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
		[GPC_SIM_EFFECT_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
		[GPC_SIM_EFFECT_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
		[GPC_SIM_EFFECT_GRAPH_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
		[GPC_SIM_EFFECT_GRAPH_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
		[GPC_SIM_EFFECT_HOST] = CU_GRAPH_NODE_TYPE_HOST,
	};

	if (!node || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = types[node_of(node)->kind];
	return CUDA_SUCCESS;
}

/* Priorities and clusters have no effect. */
CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value)
{
	return node && value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
