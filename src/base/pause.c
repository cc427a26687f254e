/* SPDX-License-Identifier: Apache-2.0 */
/* poll() on nothing: unlike sleep(), it neither uses nor disturbs a timer or a signal of the host. */
#include "base/pause.h"

#include <poll.h>
#include <stddef.h>

bool gpc_pause(uint64_t step_ms, uint64_t *left_ms)
{
	uint64_t ms = step_ms < *left_ms ? step_ms : *left_ms;

	if (ms == 0)
		return false;
	(void)poll(NULL, 0, (int)ms);
	*left_ms -= ms;
	return true;
}
