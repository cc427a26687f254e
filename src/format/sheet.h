/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current balance sheet of a device, from its recording.
 *
 * The library reads the driver's free memory only now and then, because each query takes too long for an allocation.
 * Between two readings only changes of our own memory are known, so
 *
 *      free now     = free at the reading + ours at the reading - ours now          ours = reserved + direct
 *      process now  = process at the reading - ours at the reading + ours now       with NVML only
 *
 * model/balance.h computes the lines of the sheet from these numbers, as it does for the short form.
 *
 * Invariants  1 No line is adjusted to make the sum right: gpc_balance_difference() returns the difference.
 *             2 An unknown line is GPUCACHE_UNKNOWN, never 0.
 * Threads     Pure functions.
 * Failure     False if the recording has no reading of the device.
 * Limits      What other processes allocated or freed after the last reading is not included.
 */
#ifndef GPC_FORMAT_SHEET_H
#define GPC_FORMAT_SHEET_H

#include "format/recording.h"
#include "model/balance.h"

/* Sums of COUNTERS over all contexts of one device. */
struct gpc_device_totals {
	struct gpucache_counters sum; /* `context` and `generation` are unused */
	unsigned n_contexts;
};

struct gpc_device_totals gpc_recording_totals(
	const struct gpc_recording *recording, int32_t ordinal);

/* The balance of `device` now, or when its process ended. */
bool gpc_recording_balance(const struct gpc_recording *recording,
	const struct gpucache_device *device, struct gpucache_balance *ret_balance);

#endif
