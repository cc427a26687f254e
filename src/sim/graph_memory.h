/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that graphs own: what allocation nodes stand for.
 *
 * A node gets its address when it is added, and memory behind it only while a launch needs it.  What
 * a device's graphs once needed stays reserved for all of them, until it is trimmed:
 *
 *      add node      an address, nothing reserved
 *      launch        in use: from the launch on; reserved grows where it is less than all that is in use
 *      free          in use until the stream gets there, whether by a node, cuMemFreeAsync or cuMemFree
 *      trim          reserved = in use
 *
 * Invariants  1 reserved >= used, at each call that looks.
 * Threads     Any; one lock for all graphs of the machine, outside the device's.
 * Failure     The driver's codes.
 * Limits      A graph may be instantiated more than once, which the driver refuses.
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

/* The nodes of an allocation of `size` bytes, and of its free. */
CUresult gpc_sim_graph_block_create(struct gpc_sim_device *device, struct gpc_sim *sim,
	uint64_t size, struct gpc_sim_effect **ret_node);
CUresult gpc_sim_graph_block_free_node(
	struct gpc_sim *sim, uint64_t ptr, struct gpc_sim_effect **ret_node);

/* Adds, and removes, a holder. */
void gpc_sim_graph_block_retain(struct gpc_sim_graph_block *block);
void gpc_sim_graph_block_release(struct gpc_sim_graph_block *block);

/*
 * Begins a launch: memory for all its allocation nodes.  INVALID_VALUE: one is still live; NOT_SUPPORTED: memory nodes
 * cannot be part of another graph.
 */
CUresult gpc_sim_graph_memory_begin(
	struct gpc_sim_stream *stream, const struct gpc_sim_graph *graph);

/* After the submission of its work: frees by its own nodes are ordered after it. */
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
