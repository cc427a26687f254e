/* SPDX-License-Identifier: Apache-2.0 */
/* One trace, one policy, several devices. */
#include "tools/gpumem-replay/sizes.h"

#include "base/bytes.h"

const uint64_t gpc_sizes[GPC_N_SIZES] = { 1010, 1020, 1050, 1100, 1500, 0 };

enum gpc_status gpc_sizes_run(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, struct gpc_sizes *ret_sizes)
{
	struct gpc_run_settings at = *settings;
	enum gpc_status st =
		gpc_run_smallest(trace, policy, settings, &ret_sizes->smallest_device_bytes, NULL);

	for (int i = 0; i < GPC_N_SIZES && !st; i++) {
		at.device_bytes = 0;
		if (gpc_sizes[i])
			at.device_bytes = gpc_round_up(
				trace->fixed_bytes + trace->peak_live_bytes / 1000 * gpc_sizes[i],
				GPC_RUN_DEVICE_STEP);
		st = gpc_run(trace, policy, &at, &ret_sizes->runs[i]);
	}
	return st;
}
