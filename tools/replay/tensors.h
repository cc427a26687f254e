/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a PyTorch program to its allocator, from a recording of libgpucache.so.
 *
 *      cudaMalloc of an arena        PyTorch's own: its tensors are counted instead
 *      cuMemCreate                   the same, with expandable_segments
 *      a tensor                      one request, on the stream of its address range
 *      any other cudaMalloc          one request, past PyTorch's cache
 *
 * PyTorch does not report the stream of a tensor.  With expandable_segments each stream has two address ranges, for
 * small and for large blocks, each longer than the device's memory: gaps between addresses separate the ranges, and a
 * range stands for a stream.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Without expandable_segments all tensors are on one stream, and a tensor includes the remainder that
 *             PyTorch did not split off: up to 1 MiB.
 */
#ifndef GPC_REPLAY_TENSORS_H
#define GPC_REPLAY_TENSORS_H

#include "format/recording.h"

struct gpc_tensors {
	bool has_torch;    /* PyTorch allocated on the device */
	bool has_physical; /* its cache is physical memory, in ranges of its own */
	bool *is_arena;    /* of the events */
	uint64_t *ranges;  /* start addresses, ascending */
	size_t n_ranges;
};

/* `events`: of device `ordinal` only, in order. */
void gpc_tensors_find(struct gpc_tensors *tensors, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events);
void gpc_tensors_fini(struct gpc_tensors *tensors);

/* The stream of a tensor at this address: 1 or more. */
uint64_t gpc_tensors_stream(const struct gpc_tensors *tensors, uint64_t address);

#endif
