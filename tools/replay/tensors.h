/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a PyTorch program asked its allocator for, in a recording of libgpucache.so.
 *
 *      cudaMalloc, an arena          PyTorch's own: its tensors stand for it
 *      cuMemCreate                   the same, where it runs with expandable_segments
 *      a tensor                      one request, on the stream of the range that it lies in
 *      cudaMalloc of anybody else    one request, past PyTorch's cache
 *
 * With expandable_segments each stream, of small and of large blocks, has a range of addresses of its own, longer
 * than the device is big.  So the ranges are told apart by the gaps between them, and stand for the streams,
 * which PyTorch does not report.
 *
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      Without expandable_segments all tensors are of one stream, and a tensor counts with what PyTorch
 *             did not split off behind it: up to 1 MiB.
 */
#ifndef GPC_REPLAY_TENSORS_H
#define GPC_REPLAY_TENSORS_H

#include "format/recording.h"

struct gpc_tensors {
	bool has_torch;    /* PyTorch allocated on the device */
	bool has_physical; /* its cache is physical memory, in ranges of its own */
	bool *is_arena;    /* of the events */
	uint64_t *ranges;  /* where each begins, in rising order */
	size_t n_ranges;
};

/* `events`: of device `ordinal` only, in their order. */
GPC_MUST_CHECK enum gpc_status gpc_tensors_find(struct gpc_tensors *tensors,
	const struct gpc_recording *recording, int32_t ordinal, const struct gpucache_event *events,
	size_t n_events);
void gpc_tensors_fini(struct gpc_tensors *tensors);

/* The name of the stream that a tensor at this address is of: 1 and more. */
uint64_t gpc_tensors_stream(const struct gpc_tensors *tensors, uint64_t address);

#endif
