/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded wait: pauses between two polls, subtracted from the time that is left.
 *
 *      while (!is_over() && gpc_pause(1, &left_ms))
 *              ;
 *
 * Threads   Any; no lock of ours may be held.  Uses no signal and no timer of the host.
 * Failure   None.  A signal ends the pause early, so a wait may be shorter than its bound.
 */
#ifndef GPC_BASE_PAUSE_H
#define GPC_BASE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

/* Pauses for `step_ms` or *left_ms milliseconds, whichever is less, and subtracts them.  False, at once: none left. */
bool gpc_pause(uint64_t step_ms, uint64_t *left_ms);

#endif
