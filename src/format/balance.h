/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current balance sheet of a device, from its recording.
 *
 * Querying the driver's free memory costs too much to do at each allocation.  Between two readings only
 * our own memory is known to change, so
 *
 *      free now     = free at the reading + ours at the reading - ours now          ours = reserved + direct
 *      process now  = process at the reading - ours at the reading + ours now       with NVML only
 *
 * and model/balance.h does the rest, as it does for the short form.
 *
 * Invariants  1 No line is adjusted to make the sum right: gpc_balance_difference() returns what is missing.
 *             2 An unknown line is GPUCACHE_UNKNOWN, never 0.
 * Threads     Pure functions.
 * Failure     False if there is no reading of the device.
 * Limits      Changes by other processes since the reading are missing until the next one.
 */
#ifndef GPC_FORMAT_BALANCE_H
#define GPC_FORMAT_BALANCE_H

#include "format/recording.h"
#include "model/balance.h"

/* Sums of COUNTERS over all contexts of one device. */
struct gpc_device_totals {
	/* context, generation unused */
	struct gpucache_counters sum;
	unsigned n_contexts;
};

struct gpc_device_totals gpc_recording_totals(
	const struct gpc_recording *recording, int32_t ordinal);

/* The balance of `device` now, or when its process ended. */
bool gpc_recording_balance(const struct gpc_recording *recording,
	const struct gpucache_device *device, struct gpucache_balance *ret_balance);

#endif
