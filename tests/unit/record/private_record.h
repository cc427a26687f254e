/* SPDX-License-Identifier: Apache-2.0 */
/* A recording in private memory, for tests of one region. */
#ifndef GPC_TESTS_UNIT_RECORD_PRIVATE_RECORD_H
#define GPC_TESTS_UNIT_RECORD_PRIVATE_RECORD_H

#include "record/store.h"
#include "unit.h"

static struct gpc_record rec;

static int open_private(void **state)
{
	const struct gpc_record_params params = {
		.is_private = true, .rank = -1, .n_devices = 2, .size = GPC_RECORD_MIN_SIZE
	};

	return gpc_record_open(&rec, &params) == GPC_OK ? 0 : -1;
}

static int close_private(void **state)
{
	gpc_record_close(&rec);
	return 0;
}

/* The i-th record of a region of fixed records; the head of an append-only one. */
static inline void *record_at(enum gpucache_region_kind kind, size_t i)
{
	return rec.base + rec.regions[kind]->offset + i * rec.regions[kind]->record_size;
}

FIXTURE(open_private, close_private);

#endif
