/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

static atomic_bool broken;

bool gpc_is_broken(void)
{
	return atomic_load_explicit(&broken, memory_order_relaxed);
}

void gpc_check_failed(const char *condition, const char *file, int line)
{
	bool was_broken = atomic_exchange(&broken, true);

	if (!was_broken)
		gpc_log("internal check failed at %s:%d: %s; from here on every call goes straight "
			"to the "
			"driver. Please report this line.",
			file, line, condition);
#if GPC_CHECK_LEVEL >= 1
	abort();
#endif
}
