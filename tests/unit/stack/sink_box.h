/* SPDX-License-Identifier: Apache-2.0 */
/* A sink for tests: keeps the records of each kind, and refuses when told to. */
#ifndef GPC_TESTS_UNIT_STACK_SINK_BOX_H
#define GPC_TESTS_UNIT_STACK_SINK_BOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "stack/sink.h"

#define SINK_BOX_BYTES (4u << 20)

struct sink_box {
	char bytes[GPUCACHE_REGION_COUNT][SINK_BOX_BYTES];
	uint32_t used[GPUCACHE_REGION_COUNT];
	uint32_t n[GPUCACHE_REGION_COUNT];
	atomic_flag busy;
	_Atomic bool refuses;
};

/* Kinds are appended under different locks of the library, so the box has one of its own. */
static inline bool sink_box_append(
	void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	struct sink_box *box = self;
	bool ok;

	while (atomic_flag_test_and_set(&box->busy))
		;
	ok = !box->refuses && size % 8 == 0 && size <= SINK_BOX_BYTES - box->used[region];
	if (ok) {
		memcpy(box->bytes[region] + box->used[region], record, size);
		box->used[region] += size;
		box->n[region]++;
	}
	atomic_flag_clear(&box->busy);
	return ok;
}

static inline void sink_box_clear(struct sink_box *box)
{
	memset(box->used, 0, sizeof(box->used));
	memset(box->n, 0, sizeof(box->n));
	atomic_flag_clear(&box->busy);
	box->refuses = false;
}

static inline struct gpc_stack_sink sink_box_sink(struct sink_box *box)
{
	return (struct gpc_stack_sink){ .self = box, .append = sink_box_append };
}

/* The record behind the one at `at`; the first for NULL, NULL at the end.  Every record starts with its size. */
static inline const void *sink_box_next(
	const struct sink_box *box, enum gpucache_region_kind region, const void *at)
{
	const char *next = box->bytes[region];
	uint32_t size;

	if (at) {
		memcpy(&size, at, sizeof(size));
		next = (const char *)at + size;
	}
	return next < box->bytes[region] + box->used[region] ? next : NULL;
}

#endif
