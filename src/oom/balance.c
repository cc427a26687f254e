/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums the counters of the device's contexts and hands them, with the driver's and NVML's answers, to model/balance.h.
 * NVML's total includes the whole reserve of the driver, CUDA's total at most a part of it; only that part is a line.
 */
#include "oom/balance.h"

#include <string.h>

#include "model/counters.h"

static struct gpucache_counters sum_of(
	const struct gpucache_counters *counters, size_t n, int32_t device)
{
	struct gpucache_counters sum = { 0 };

	for (size_t i = 0; i < n; i++)
		if (counters[i].context != 0 && counters[i].device == device)
			gpc_counters_add(&sum, &counters[i]);
	return sum;
}

/* The part of NVML's reserved bytes that lies inside CUDA's total. */
static uint64_t reserve_inside(uint64_t device_total, const struct gpc_neighbours *neighbours)
{
	if (neighbours->driver_bytes == GPUCACHE_UNKNOWN || device_total == GPUCACHE_UNKNOWN ||
		neighbours->nvml_total_bytes == GPUCACHE_UNKNOWN)
		return GPUCACHE_UNKNOWN;
	return gpc_bytes_less(neighbours->driver_bytes,
		gpc_bytes_less(neighbours->nvml_total_bytes, device_total));
}

void gpc_balance_fill(const struct gpucache_counters *counters, size_t n,
	const struct gpc_device_look *look, const struct gpc_neighbours *neighbours,
	struct gpucache_balance *ret_balance, uint64_t ret_kind_bytes[GPUCACHE_MAX_KINDS])
{
	const struct gpucache_counters sum = sum_of(counters, n, look->device);
	const struct gpc_balance_facts facts = {
		.requested = sum.requested_bytes,
		.live = sum.live_bytes,
		.pending = sum.pending_bytes,
		.cached = sum.cached_bytes,
		.direct = sum.direct_bytes,
		.cached_largest = look->cached_largest,
		.device_free = look->device_free,
		.device_total = look->device_total,
		.process = neighbours->process_bytes,
		.others = neighbours->others_bytes,
		.driver = reserve_inside(look->device_total, neighbours),
	};

	gpc_balance_settle(&facts, ret_balance);
	memcpy(ret_kind_bytes, sum.kind_bytes, sizeof sum.kind_bytes);
}
