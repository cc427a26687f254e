/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink takes the records of stacks, code objects, modules and tags: in the product the recording, in tests an array.
 *
 * Threads   Any thread calls append, with at most a lock of rank DEPOT held.  append may take locks of higher rank.  It
 *           must not capture a stack, nor call the dynamic loader.
 * Failure   False: the region has no room for the record.  Nothing is ever removed from a region.
 */
#ifndef GPC_STACK_SINK_H
#define GPC_STACK_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

struct gpc_stack_sink {
	void *self;
	/* Appends record[0 .. size) to the region of that kind.  size is a multiple of 8. */
	bool (*append)(
		void *self, enum gpucache_region_kind region, const void *record, uint32_t size);
};

#endif
