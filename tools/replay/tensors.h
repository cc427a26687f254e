/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a PyTorch program to its allocator, from a recording of libgpucache.so.
 *
 *      cudaMalloc of an arena        no request: PyTorch cuts the arena into tensors
 *      cuMemCreate                   no request either, with expandable_segments
 *      a tensor                      one request, on the stream of its address range
 *      any other cudaMalloc          one request, which PyTorch's cache does not see
 *
 * PyTorch does not report the stream of a tensor.  With expandable_segments each stream has two address ranges, one for
 * small and one for large blocks.  A range is longer than the device's memory, so large gaps between the tensors'
 * addresses separate the ranges.  Each range counts as a stream.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Without expandable_segments all tensors count as one stream's.  A tensor's size includes the remainder
 *             that PyTorch did not split off, up to 1 MiB.
 *             Misses a freed arena if the ring has overwritten the events of all its tensors.
 */
#ifndef GPC_REPLAY_TENSORS_H
#define GPC_REPLAY_TENSORS_H

#include "format/recording.h"

struct gpc_tensors {
	bool has_torch;    /* PyTorch allocated on the device */
	bool has_physical; /* PyTorch's cache is memory of cuMemCreate: with expandable_segments */
	bool *is_arena;    /* event i allocates or frees an arena */
	uint64_t *ranges;  /* the lowest tensor of each address range, ascending */
	size_t n_ranges;
};

/*
 * Sets is_arena[i] if events[i] allocates or frees an arena.  A block live at the end is an arena if it has the flag
 * GPUCACHE_BLOCK_ARENA, a block freed before if the address of a tensor's event lies inside it; with expandable_segments
 * all physical memory is.  The events are all of device `ordinal`, oldest first.
 */
void gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena);

/* True if PyTorch's cache is memory of cuMemCreate: it has tensors, and no block of cudaMalloc is an arena. */
bool gpc_arenas_are_physical(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, const bool *is_arena);

/* Finds the arenas and the address ranges.  The events are those of gpc_arenas_mark(). */
void gpc_tensors_find(struct gpc_tensors *tensors, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events);
void gpc_tensors_fini(struct gpc_tensors *tensors);

/* Returns the stream of a tensor at this address, 1 or more. */
uint64_t gpc_tensors_stream(const struct gpc_tensors *tensors, uint64_t address);

#endif
