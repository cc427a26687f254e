/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a recording: a pure function of the file's size and the number of devices.
 *
 * The small regions come first: PAGES, DEVICES, COUNTERS, TORCH, STREAMS, TEXT, HISTORY, PEAKS, OOMS.  The space left
 * is divided into 28 parts: STACKS get 6, CODES 2, MODULES 1, TAGS 1/2, SITES 2, SEGMENTS 1, and EVENTS the largest
 * power of two that is at most 8 parts.  BLOCKS get all that remains, about 8 parts.  A file of 8 MiB for one device
 * has 38,336 blocks, 32,768 events and 1.6 MiB of stacks.
 */
#ifndef GPC_RECORD_LAYOUT_H
#define GPC_RECORD_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "gpucache_format.h"

struct gpc_layout {
	struct gpucache_region regions[GPUCACHE_REGION_COUNT - 1];
	uint32_t n_regions;
	uint32_t max_points; /* of each buffer of HISTORY */
	uint64_t file_size;  /* the end of the last region, at most `size` */
};

/* Computes the layout for a file of size >= GPC_RECORD_MIN_SIZE bytes and n_devices <= GPUCACHE_MAX_DEVICES. */
void gpc_layout_make(struct gpc_layout *layout, size_t size, uint32_t n_devices);

#endif
