/* SPDX-License-Identifier: Apache-2.0 */
/* A graph is a list of effects; a launch submits clones of them, one after another, except those of memory nodes. */
#include "sim/gpu/execution/graph.h"

#include <stdlib.h>

static _Atomic uint64_t n_numbers;

struct gpc_sim_graph *gpc_sim_graph_create(void)
{
	return calloc(1, sizeof(struct gpc_sim_graph));
}

void gpc_sim_graph_add(struct gpc_sim_graph *graph, struct gpc_sim_effect *effect)
{
	effect->next = NULL;
	if (graph->last)
		graph->last->next = effect;
	else
		graph->first = effect;
	graph->last = effect;
	graph->n_nodes++;
	if (!effect->number)
		effect->number = atomic_fetch_add(&n_numbers, 1) + 1;
}

struct gpc_sim_graph *gpc_sim_graph_clone(const struct gpc_sim_graph *graph)
{
	struct gpc_sim_graph *clone = gpc_sim_graph_create();

	if (!clone)
		return NULL;
	for (const struct gpc_sim_effect *effect = graph->first; effect; effect = effect->next) {
		struct gpc_sim_effect *copy = gpc_sim_effect_clone(effect);
		if (!copy) {
			gpc_sim_graph_destroy(clone);
			return NULL;
		}
		gpc_sim_graph_add(clone, copy);
	}
	return clone;
}

void gpc_sim_graph_destroy(struct gpc_sim_graph *graph)
{
	if (!graph)
		return;
	for (struct gpc_sim_effect *effect = graph->first, *next; effect; effect = next) {
		next = effect->next;
		gpc_sim_effect_destroy(effect);
	}
	free(graph);
}

static CUresult replace_node(struct gpc_sim_effect *node, const struct gpc_sim_effect *by)
{
	struct gpc_sim_effect *copy;
	struct gpc_sim_effect old = *node;

	if (node->kind != by->kind || node->block || by->block)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	copy = gpc_sim_effect_clone(by);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*node = *copy;
	node->next = old.next;
	node->number = old.number;
	*copy = old;
	gpc_sim_effect_destroy(copy);
	return CUDA_SUCCESS;
}

struct gpc_sim_effect *gpc_sim_graph_find(const struct gpc_sim_graph *graph, uint64_t number)
{
	struct gpc_sim_effect *node = graph->first;

	while (node && node->number != number)
		node = node->next;
	return node;
}

CUresult gpc_sim_graph_replace(struct gpc_sim_effect *node, const struct gpc_sim_effect *by)
{
	CUresult res = CUDA_SUCCESS;

	for (; by && res == CUDA_SUCCESS; by = by->next) {
		res = node ? replace_node(node, by) : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
		node = node ? node->next : NULL;
	}
	return res;
}

CUresult gpc_sim_graph_launch(const struct gpc_sim_graph *graph, struct gpc_sim_stream *stream)
{
	CUresult res = gpc_sim_graph_memory_begin(stream, graph);

	for (const struct gpc_sim_effect *effect = graph->first; effect && res == CUDA_SUCCESS;
		effect = effect->next) {
		if (effect->block)
			continue;
		struct gpc_sim_effect *copy = gpc_sim_effect_clone(effect);
		res = copy ? gpc_sim_stream_submit_node(stream, copy) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (res == CUDA_SUCCESS)
		gpc_sim_graph_memory_end(graph, stream);
	return res;
}
