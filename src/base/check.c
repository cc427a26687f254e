/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow path of a failed check.  The first failure marks the library broken and logs one line; from then on every
 * hook passes its call to the driver.
 */
#include "base/check.h"

#include <stdlib.h>

#include "base/log.h"

atomic_bool gpc_broken;

void gpc_check_failed(const char *condition, const char *file, int line)
{
	bool was_broken = atomic_exchange(&gpc_broken, true);

	if (!was_broken)
		gpc_log("internal check failed at %s:%d: %s; from here on every call goes straight "
			"to the driver. Please report this line.",
			file, line, condition);
#if GPC_CHECK_LEVEL >= 1
	abort();
#endif
}
