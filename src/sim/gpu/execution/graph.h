/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph: work that was captured and can be launched again and again.
 *
 *      first --> [ fill ] --> [ kernel ] --> [ copy ] <-- last          launch submits a clone of each to a stream
 *
 * Nodes that allocate or free memory are not submitted: see graph_memory.h.
 *
 * Invariants  1 A graph owns its nodes.  A launch submits clones, so the graph may be destroyed while they are in
 *             flight.
 * Threads     One at a time for each graph; several may launch a graph that no longer changes.
 * Failure     NULL or OUT_OF_MEMORY without memory.  A launch also fails with the error of a submission; the nodes
 *             before the failed one remain submitted.
 * Limits      A graph runs its nodes one after another, in the order of capture, each in the context that it was
 *             captured in.  The race detector takes all of them for work of the stream.
 */
#ifndef GPC_SIM_GRAPH_H
#define GPC_SIM_GRAPH_H

#include "sim/gpu/execution/stream.h"

struct gpc_sim_graph {
	struct gpc_sim_effect *first, *last;
	unsigned n_nodes;
	bool frees_on_launch; /* instantiated with AUTO_FREE_ON_LAUNCH */
};

struct gpc_sim_graph *gpc_sim_graph_create(void);
struct gpc_sim_graph *gpc_sim_graph_clone(const struct gpc_sim_graph *graph);
void gpc_sim_graph_destroy(struct gpc_sim_graph *graph);

/* Appends a node, and takes ownership of `effect`.  A node has a number of its own, which its clones share. */
void gpc_sim_graph_add(struct gpc_sim_graph *graph, struct gpc_sim_effect *effect);

/* The node of this number, or its clone; NULL if there is none. */
struct gpc_sim_effect *gpc_sim_graph_find(const struct gpc_sim_graph *graph, uint64_t number);

/*
 * Gives a node, and those after it, the contents of `by` and of the nodes after that.  Another kind of node, or none:
 * UPDATE_FAILURE; the nodes before that have changed.
 */
CUresult gpc_sim_graph_replace(struct gpc_sim_effect *node, const struct gpc_sim_effect *by);

CUresult gpc_sim_graph_launch(const struct gpc_sim_graph *graph, struct gpc_sim_stream *stream);

#endif
