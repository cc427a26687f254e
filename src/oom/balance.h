/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balance sheet of a device at an OOM, from our counters, the driver's last answer and NVML's.
 *
 * The arithmetic itself is model/balance.h; here the numbers are gathered: the counters of all
 * contexts of the device are added up, and of the driver's reserve only the part that CUDA's total
 * counts is taken.
 *
 *	NVML   |<---- reserved ---->|<------- used ------->|<-- free -->|
 *	CUDA            |<-------------- device_total ----------------->|
 *	                |<-- in it->|
 *
 * Threads   Pure functions over copies.
 * Failure   None; unknown stays unknown.
 * Limits    Counters of contexts that work at this moment may disagree by the operation in flight.
 */
#ifndef GPC_OOM_BALANCE_H
#define GPC_OOM_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gpucache_format.h"
#include "model/balance.h"
#include "oom/neighbours.h"

/* What the driver and the pools said just now.  GPUCACHE_UNKNOWN where they did not. */
struct gpc_device_look {
	int32_t device;
	uint64_t device_free;
	uint64_t device_total;
	uint64_t cached_largest; /* largest free piece of the device's pools */
};

/*
 * Fills the sheet of look->device from counters[0 .. n), of which unused ones and those of other
 * devices are skipped.  neighbours may be NULL.
 */
void gpc_balance_fill(const struct gpucache_counters *counters, size_t n,
	const struct gpc_device_look *look, const struct gpc_neighbours *neighbours,
	struct gpucache_balance *ret_balance);

/* What its line `direct` consists of, from the same counters. */
void gpc_balance_fill_kinds(const struct gpucache_counters *counters, size_t n, int32_t device,
	uint64_t ret_kind_bytes[GPUCACHE_MAX_KINDS]);

/* Copies what a failed request keeps of its neighbours: names, pids, bytes. */
void gpc_oom_set_neighbours(struct gpucache_oom *oom, const struct gpc_neighbours *neighbours);

#endif
