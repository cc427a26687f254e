/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded wait: the thread pauses between two polls, and each pause is subtracted from the time that is left.
 *
 *      while (!is_over() && gpc_pause(1, &left_ms))
 *              ;
 *
 * poll() on no descriptor is the pause: unlike sleep(), it neither uses nor disturbs a timer or a signal of the host.
 *
 * Threads   Any; the caller holds no lock of the library.
 * Failure   None.  A signal ends the pause early, so a wait may be shorter than its bound.
 */
#ifndef GPC_BASE_PAUSE_H
#define GPC_BASE_PAUSE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Pauses for `step_ms` or *left_ms milliseconds, whichever is less, and subtracts them from *left_ms.  Returns false,
 * without a pause, if *left_ms is 0.
 */
static inline bool gpc_pause(uint64_t step_ms, uint64_t *left_ms)
{
	uint64_t ms = step_ms < *left_ms ? step_ms : *left_ms;

	if (ms == 0)
		return false;
	(void)poll(NULL, 0, (int)ms);
	*left_ms -= ms;
	return true;
}

#endif
