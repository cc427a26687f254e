/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a recording: a pure function of its size and the number of devices.
 *
 * Small regions (pages, devices, counters, PyTorch, streams, text, history, peaks, OOMs) come first.  The
 * rest is split into 28 parts: blocks about 8, events up to 8 (a power of two), stacks 6, codes 2,
 * sites 2, modules 1, segments 1, tags 1/2.  A file of 8 MiB for one device has 38,000 blocks, 32,768
 * events and 1.6 MiB of stacks.
 *
 * Limits   Works from GPC_RECORD_MIN_SIZE on.
 */
#ifndef GPC_RECORD_LAYOUT_H
#define GPC_RECORD_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "gpucache_format.h"

struct gpc_layout {
	struct gpucache_region regions[GPUCACHE_REGION_COUNT - 1];
	uint32_t n_regions;
	uint32_t max_points; /* of each history buffer */
	uint64_t file_size;  /* used, at most the requested size */
};

/* `size` is at least GPC_RECORD_MIN_SIZE, n_devices at most GPUCACHE_MAX_DEVICES. */
void gpc_layout_make(struct gpc_layout *layout, size_t size, uint32_t n_devices);

#endif
