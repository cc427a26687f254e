/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is rounded up to a multiple of 512 B, or of 1/divisions of the power of two below it if that is more;
 * `divisions` itself is rounded down to a power of two, because a step must be one.  The table in size_class.h has the
 * sizes of segments.
 */
#include "alloc/size_class.h"

uint64_t gpc_size_round(uint64_t size, uint32_t divisions)
{
	uint64_t rounded = gpc_round_up(size, GPC_GRAIN);
	uint64_t power;
	uint64_t step;

	if (divisions <= 1 || size <= GPC_GRAIN * divisions)
		return rounded;
	power = UINT64_C(1) << (63 - __builtin_clzll(size));
	step = power >> (31 - __builtin_clz(divisions));
	if (step < GPC_GRAIN)
		return rounded;
	return gpc_round_up(size, step);
}

uint64_t gpc_size_segment(uint64_t rounded, bool has_idle_rests)
{
	if (rounded <= GPC_SMALL_MAX)
		return GPC_SMALL_SEGMENT;
	if (rounded >= GPC_MEDIUM_MAX)
		return gpc_size_tight_segment(rounded);
	return has_idle_rests ? gpc_size_tight_segment(GPC_MEDIUM_SEGMENT / rounded * rounded)
			      : GPC_MEDIUM_SEGMENT;
}
