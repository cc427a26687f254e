/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that graphs own: the blocks of their allocation nodes.
 *
 * An allocation node gets an address when it is created, but uses memory only from a launch until the free.  The
 * high-water mark of all graphs of a device stays reserved for them until a trim:
 *
 *      create node   the block gets an address; `used` and `reserved` stay as they are
 *      launch        the blocks count as used; reserved = max(reserved, used)
 *      free          by a node or cuMemFreeAsync: the block counts as used until the stream's earlier work ends;
 *                    by cuMemFree: the block is unused at once
 *      trim          reserved = used
 *
 * Invariants  1 reserved >= used whenever the program reads them.
 * Threads     Any; one lock for all graphs of the machine, taken before the device's.
 * Failure     The driver's codes.
 * Limits      A graph with allocation nodes may be instantiated more than once; the real driver refuses that.  If a
 *             launch fails for one device, what it reserved on others stays until a trim.
 */
#ifndef GPC_SIM_GRAPH_MEMORY_H
#define GPC_SIM_GRAPH_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "driver/cuda_abi.h"
#include "sim/gpu/config.h"

struct gpc_sim;
struct gpc_sim_device;
struct gpc_sim_effect;
struct gpc_sim_graph;
struct gpc_sim_stream;

/* The memory of one allocation node. */
struct gpc_sim_graph_block {
	struct gpc_list link; /* in the machine's `graph_memory.blocks` */
	struct gpc_sim *sim;
	struct gpc_sim_device *device;
	uint64_t ptr;
	uint64_t size;
	unsigned n_nodes; /* references: nodes that allocate or free the block, and their clones */
	bool is_live;     /* allocated by a launch and not freed */
	uint64_t end_ns;  /* a freed block counts as used until this time */
};

struct gpc_sim_graph_memory {
	struct gpc_list blocks;
	struct {
		uint64_t reserved, reserved_high, used_high;
	} of[GPC_SIM_MAX_DEVICES];

	pthread_mutex_t lock;
};

void gpc_sim_graph_memory_init(struct gpc_sim *sim);
void gpc_sim_graph_memory_fini(struct gpc_sim *sim);

/* Creates an allocation node of `size` bytes, with its block.  INVALID_VALUE: `size` is 0. */
CUresult gpc_sim_graph_block_create(struct gpc_sim_device *device, struct gpc_sim *sim,
	uint64_t size, struct gpc_sim_effect **ret_node);

/* Creates a node that frees the block at `ptr`.  INVALID_VALUE: no block starts there. */
CUresult gpc_sim_graph_block_free_node(
	struct gpc_sim *sim, uint64_t ptr, struct gpc_sim_effect **ret_node);

/* Adds the reference of a node. */
void gpc_sim_graph_block_retain(struct gpc_sim_graph_block *block);

/* Drops the reference of a node.  A block without references is destroyed as soon as it is not live. */
void gpc_sim_graph_block_release(struct gpc_sim_graph_block *block);

/*
 * Begins a launch: reserves memory for the graph's allocation nodes.  OUT_OF_MEMORY: the device has too little.
 * INVALID_VALUE: a block is still live from an earlier launch, and the graph does not free on launch.  NOT_SUPPORTED:
 * the stream is captured, but a graph with memory nodes cannot become part of another graph.
 */
CUresult gpc_sim_graph_memory_begin(
	struct gpc_sim_stream *stream, const struct gpc_sim_graph *graph);

/* Call after the graph's work is submitted: the blocks that its nodes free count as used until that work ends. */
void gpc_sim_graph_memory_end(
	const struct gpc_sim_graph *graph, const struct gpc_sim_stream *stream);

/* Frees the live block at `ptr`, as cuMemFreeAsync does, or as cuMemFree if `stream` is NULL.  False: there is none. */
bool gpc_sim_graph_memory_free(
	struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr);

void gpc_sim_graph_memory_trim(struct gpc_sim *sim, unsigned device);

/* All four attributes have 64 bits.  Only the high-water marks can be set, and only to 0: they restart from now. */
CUresult gpc_sim_graph_memory_get(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t *ret_value);
CUresult gpc_sim_graph_memory_set(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t value);

#endif
