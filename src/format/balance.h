/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balance sheet of a device, put together from what a recording says of it now.
 *
 * The driver says how much is free only when the library asks it, and asking costs too much to do
 * it at each allocation.  Between two looks only our own books move, so
 *
 *      free now     = free at the look + ours at the look - ours now          ours = reserved + direct
 *      process now  = process at the look - ours at the look + ours now       with NVML only
 *
 * and model/balance.h does the rest of the arithmetic, as it does for the library's own short form.
 *
 * Invariants  1 No line is bent to make the sum right: gpc_balance_difference() shows what is
 *             missing.
 *             2 A line that nobody could know is GPUCACHE_UNKNOWN, never 0.
 * Threads     Pure functions.
 * Failure     False where the device was never looked at.
 * Limits      What other processes took or gave back since the look is in `free` until the next
 *             one.
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
