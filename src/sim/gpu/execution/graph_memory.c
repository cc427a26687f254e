/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block has an address from the creation of its node on, but counts as used only while a launch holds it.  The device
 * is charged for the high-water mark of used blocks, which a trim lowers.
 */
#include "sim/gpu/execution/graph_memory.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "sim/gpu/execution/graph.h"

static struct gpc_sim_graph_block *block_of(struct gpc_list *link)
{
	return gpc_list_entry(link, struct gpc_sim_graph_block, link);
}

void gpc_sim_graph_memory_init(struct gpc_sim *sim)
{
	gpc_list_init(&sim->graph_memory.blocks);
	pthread_mutex_init(&sim->graph_memory.lock, NULL);
}

void gpc_sim_graph_memory_fini(struct gpc_sim *sim)
{
	gpc_list_each_safe (link, &sim->graph_memory.blocks)
		free(block_of(link));
	pthread_mutex_destroy(&sim->graph_memory.lock);
}

static struct gpc_sim_graph_block *find_locked(struct gpc_sim *sim, uint64_t ptr)
{
	gpc_list_each (link, &sim->graph_memory.blocks) {
		if (block_of(link)->ptr == ptr)
			return block_of(link);
	}
	return NULL;
}

/* ---- nodes ---- */

CUresult gpc_sim_graph_block_create(struct gpc_sim_device *device, struct gpc_sim *sim,
	uint64_t size, struct gpc_sim_effect **ret_node)
{
	struct gpc_sim_graph_block *block = calloc(1, sizeof *block);
	struct gpc_sim_effect *node = gpc_sim_effect_create(GPC_SIM_EFFECT_GRAPH_ALLOC, 0);
	CUresult res = CUDA_ERROR_OUT_OF_MEMORY;

	if (!block || !node)
		goto undo_records;
	res = size ? gpc_sim_device_reserve(device, size, &block->ptr) : CUDA_ERROR_INVALID_VALUE;
	if (res != CUDA_SUCCESS)
		goto undo_records;
	block->sim = sim;
	block->device = device;
	block->size = gpc_round_up(size, GPC_SIM_CHUNK);
	block->n_nodes = 1;
	node->dst = block->ptr;
	node->block = block;
	pthread_mutex_lock(&sim->graph_memory.lock);
	gpc_list_append(&sim->graph_memory.blocks, &block->link);
	pthread_mutex_unlock(&sim->graph_memory.lock);
	*ret_node = node;
	return CUDA_SUCCESS;

undo_records:
	gpc_sim_effect_destroy(node);
	free(block);
	return res;
}

CUresult gpc_sim_graph_block_free_node(
	struct gpc_sim *sim, uint64_t ptr, struct gpc_sim_effect **ret_node)
{
	struct gpc_sim_effect *node = gpc_sim_effect_create(GPC_SIM_EFFECT_GRAPH_FREE, 0);

	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim->graph_memory.lock);
	node->block = find_locked(sim, ptr);
	if (node->block)
		node->block->n_nodes++;
	pthread_mutex_unlock(&sim->graph_memory.lock);
	if (!node->block) {
		gpc_sim_effect_destroy(node);
		return CUDA_ERROR_INVALID_VALUE;
	}
	node->dst = ptr;
	*ret_node = node;
	return CUDA_SUCCESS;
}

void gpc_sim_graph_block_retain(struct gpc_sim_graph_block *block)
{
	pthread_mutex_lock(&block->sim->graph_memory.lock);
	block->n_nodes++;
	pthread_mutex_unlock(&block->sim->graph_memory.lock);
}

/* Destroys the block unless a node refers to it or it is live: the program may destroy the graphs and free it later. */
static void destroy_if_unused_locked(struct gpc_sim_graph_block *block)
{
	if (block->n_nodes || block->is_live)
		return;
	(void)gpc_sim_device_free(block->device, block->ptr);
	gpc_list_remove(&block->link);
	free(block);
}

void gpc_sim_graph_block_release(struct gpc_sim_graph_block *block)
{
	struct gpc_sim *sim = block->sim;

	pthread_mutex_lock(&sim->graph_memory.lock);
	block->n_nodes--;
	destroy_if_unused_locked(block);
	pthread_mutex_unlock(&sim->graph_memory.lock);
}

/* ---- launches ---- */

static uint64_t used_locked(struct gpc_sim *sim, unsigned device)
{
	uint64_t now = gpc_sim_clock_now(&sim->clock);
	uint64_t used = 0;

	gpc_list_each (link, &sim->graph_memory.blocks) {
		const struct gpc_sim_graph_block *block = block_of(link);

		if (block->device->ordinal == device && (block->is_live || block->end_ns > now))
			used += block->size;
	}
	if (used > sim->graph_memory.of[device].used_high)
		sim->graph_memory.of[device].used_high = used;
	return used;
}

static CUresult reserve_locked(struct gpc_sim *sim, struct gpc_sim_device *device)
{
	uint64_t used = used_locked(sim, device->ordinal);
	uint64_t *reserved = &sim->graph_memory.of[device->ordinal].reserved;
	uint64_t *high = &sim->graph_memory.of[device->ordinal].reserved_high;

	if (used <= *reserved)
		return CUDA_SUCCESS;
	if (gpc_sim_device_charge(device, used - *reserved) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*reserved = used;
	if (used > *high)
		*high = used;
	return CUDA_SUCCESS;
}

/* Marks every block that the graph allocates as live or not. */
static void mark_locked(const struct gpc_sim_graph *graph, bool is_live)
{
	for (const struct gpc_sim_effect *node = graph->first; node; node = node->next)
		if (node->kind == GPC_SIM_EFFECT_GRAPH_ALLOC)
			node->block->is_live = is_live;
}

static CUresult check_locked(const struct gpc_sim_stream *stream, const struct gpc_sim_graph *graph)
{
	for (const struct gpc_sim_effect *node = graph->first; node; node = node->next) {
		if (node->block && atomic_load(&stream->capture))
			return CUDA_ERROR_NOT_SUPPORTED;
		if (node->kind == GPC_SIM_EFFECT_GRAPH_ALLOC && node->block->is_live &&
			!graph->frees_on_launch)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult gpc_sim_graph_memory_begin(
	struct gpc_sim_stream *stream, const struct gpc_sim_graph *graph)
{
	struct gpc_sim *sim = stream->context->sim;

	pthread_mutex_lock(&sim->graph_memory.lock);
	CUresult res = check_locked(stream, graph);
	if (res == CUDA_SUCCESS) {
		mark_locked(graph, true);
		for (unsigned i = 0; i < sim->config.n_devices && res == CUDA_SUCCESS; i++)
			res = reserve_locked(sim, &sim->devices[i]);
		if (res != CUDA_SUCCESS)
			mark_locked(graph, false);
	}
	pthread_mutex_unlock(&sim->graph_memory.lock);
	return res;
}

static void free_locked(struct gpc_sim_graph_block *block, uint64_t end_ns)
{
	block->is_live = false;
	block->end_ns = end_ns;
}

void gpc_sim_graph_memory_end(
	const struct gpc_sim_graph *graph, const struct gpc_sim_stream *stream)
{
	struct gpc_sim *sim = stream->context->sim;

	pthread_mutex_lock(&sim->graph_memory.lock);
	for (const struct gpc_sim_effect *node = graph->first; node; node = node->next) {
		if (node->kind == GPC_SIM_EFFECT_GRAPH_FREE)
			free_locked(node->block, atomic_load(&stream->tail_ns));
	}
	pthread_mutex_unlock(&sim->graph_memory.lock);
}

bool gpc_sim_graph_memory_free(
	struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr)
{
	bool is_live;

	pthread_mutex_lock(&sim->graph_memory.lock);
	struct gpc_sim_graph_block *block = find_locked(sim, ptr);
	is_live = block && block->is_live;
	if (is_live) {
		free_locked(block, stream ? atomic_load(&stream->tail_ns) : 0);
		destroy_if_unused_locked(block);
	}
	pthread_mutex_unlock(&sim->graph_memory.lock);
	return is_live;
}

/* ---- trim and attributes ---- */

void gpc_sim_graph_memory_trim(struct gpc_sim *sim, unsigned device)
{
	uint64_t *reserved = &sim->graph_memory.of[device].reserved;

	pthread_mutex_lock(&sim->graph_memory.lock);
	uint64_t used = used_locked(sim, device);
	if (*reserved > used) {
		gpc_sim_device_uncharge(&sim->devices[device], *reserved - used);
		*reserved = used;
	}
	pthread_mutex_unlock(&sim->graph_memory.lock);
}

CUresult gpc_sim_graph_memory_get(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t *ret_value)
{
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&sim->graph_memory.lock);
	uint64_t used = used_locked(sim, device);
	switch ((int)attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*ret_value = used;
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*ret_value = sim->graph_memory.of[device].used_high;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*ret_value = sim->graph_memory.of[device].reserved;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*ret_value = sim->graph_memory.of[device].reserved_high;
		break;
	default:
		res = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim->graph_memory.lock);
	return res;
}

CUresult gpc_sim_graph_memory_set(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t value)
{
	CUresult res = value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	pthread_mutex_lock(&sim->graph_memory.lock);
	if (res == CUDA_SUCCESS && attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		sim->graph_memory.of[device].used_high = used_locked(sim, device);
	else if (res == CUDA_SUCCESS && attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		sim->graph_memory.of[device].reserved_high = sim->graph_memory.of[device].reserved;
	else
		res = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim->graph_memory.lock);
	return res;
}
