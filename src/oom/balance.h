/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balance sheet of a device at an OOM, from our counters, the driver's free memory and NVML.
 *
 * Gathers the input of model/balance.h: sums the counters of all contexts of the device, and takes the
 * part of the driver's reserve that CUDA's total includes.
 *
 *	NVML   |<---- reserved ---->|<------- used ------->|<-- free -->|
 *	CUDA            |<-------------- device_total ----------------->|
 *	                |<-- in it->|
 *
 * Threads   Pure functions over copies.
 * Failure   None; unknown stays unknown.
 * Limits    Counters of busy contexts may disagree by the operation in flight.
 */
#ifndef GPC_OOM_BALANCE_H
#define GPC_OOM_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gpucache_format.h"
#include "model/balance.h"
#include "oom/neighbours.h"

/* What the driver and the pools report about a device; GPUCACHE_UNKNOWN: nothing. */
struct gpc_device_look {
	int32_t device;
	uint64_t device_free;
	uint64_t device_total;
	uint64_t cached_largest; /* largest free piece of the device's pools */
};

/*
 * Fills the sheet of look->device, and the bytes of its line `direct` by kind, from counters[0 .. n).  Skips unused
 * counters and those of other devices.
 */
void gpc_balance_fill(const struct gpucache_counters *counters, size_t n,
	const struct gpc_device_look *look, const struct gpc_neighbours *neighbours,
	struct gpucache_balance *ret_balance, uint64_t ret_kind_bytes[GPUCACHE_MAX_KINDS]);

#endif
