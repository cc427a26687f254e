/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that graphs own: the blocks of their allocation nodes.
 *
 * A node gets an address when it is added, but uses memory only from a launch to the free.  The most that
 * all graphs of a device ever used at a time stays reserved for them, until a trim:
 *
 *      add node      an address, nothing reserved
 *      launch        the blocks are in use; reserved grows if it is less than what is in use
 *      free          by a node or cuMemFreeAsync: in use until the stream's earlier work ends; by cuMemFree: no longer
 *      trim          reserved = in use
 *
 * Invariants  1 reserved >= used, at each call that looks.
 * Threads     Any; one lock for all graphs of the machine, outside the device's.
 * Failure     The driver's codes.
 * Limits      A graph with allocation nodes may be instantiated more than once; the driver refuses that.
 */
#ifndef GPC_SIM_GRAPH_MEMORY_H
#define GPC_SIM_GRAPH_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "driver/cuda_abi.h"
#include "sim/config.h"

struct gpc_sim;
struct gpc_sim_device;
struct gpc_sim_effect;
struct gpc_sim_graph;
struct gpc_sim_stream;

/* The block of one allocation node; held by the node and by its copy in an executable graph. */
struct gpc_sim_graph_block {
	struct gpc_list link; /* in the machine */
	struct gpc_sim *sim;
	struct gpc_sim_device *device;
	uint64_t ptr;
	uint64_t size;
	unsigned n_nodes;
	bool is_live;    /* launched and not freed */
	uint64_t end_ns; /* in use until then, too */
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

/* Creates the node that frees the block at `ptr`.  INVALID_VALUE: there is none. */
CUresult gpc_sim_graph_block_free_node(
	struct gpc_sim *sim, uint64_t ptr, struct gpc_sim_effect **ret_node);

/* Adds a node that holds the block. */
void gpc_sim_graph_block_retain(struct gpc_sim_graph_block *block);

/* Removes a node; without nodes the block goes as soon as it is not live. */
void gpc_sim_graph_block_release(struct gpc_sim_graph_block *block);

/*
 * Begins a launch: reserves memory for the graph's allocation nodes.  INVALID_VALUE: the block of one is still live,
 * and the graph does not free on launch.  NOT_SUPPORTED: the stream is captured, but a graph with memory nodes cannot
 * become part of another graph.
 */
CUresult gpc_sim_graph_memory_begin(
	struct gpc_sim_stream *stream, const struct gpc_sim_graph *graph);

/* Call after the graph's work is submitted: blocks that its nodes free stay in use until that work ends. */
void gpc_sim_graph_memory_end(
	const struct gpc_sim_graph *graph, const struct gpc_sim_stream *stream);

/* cuMemFree (no stream) or cuMemFreeAsync of a live block; false if none starts there. */
bool gpc_sim_graph_memory_free(
	struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr);

void gpc_sim_graph_memory_trim(struct gpc_sim *sim, unsigned device);

/* All four attributes have 64 bits; high-water marks may be set to 0. */
CUresult gpc_sim_graph_memory_get(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t *ret_value);
CUresult gpc_sim_graph_memory_set(
	struct gpc_sim *sim, unsigned device, CUgraphMem_attribute attribute, uint64_t value);

#endif
