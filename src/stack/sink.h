/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink for records of stacks, code objects and modules: the recording, or a test.
 *
 * Threads   append is called from any thread, with at most a lock of rank DEPOT held; it may take
 *           locks of higher rank.  It must not capture a stack, and must not call the dynamic
 *           loader.
 * Failure   False: full for good; the caller then stops adding.
 */
#ifndef GPC_STACK_SINK_H
#define GPC_STACK_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

struct gpc_stack_sink {
	void *self;
	/* Appends record[0 .. size), size a multiple of 8, to the region of that kind. */
	bool (*append)(
		void *self, enum gpucache_region_kind region, const void *record, uint32_t size);
};

#endif
