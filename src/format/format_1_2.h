/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peculiarities of format 1.2, in which a thread that repeatedly freed and reallocated a block did so
 * without the lock of its context, and counted separately.
 *
 *   lanes       eight of 64 bytes behind the 576 of a record of COUNTERS, to be added to it
 *   set aside   an event number that was reserved and not used: the highest bit of seq, plus the number
 *
 * Threads   As recording.h.
 * Failure   None.
 */
#ifndef GPC_FORMAT_FORMAT_1_2_H
#define GPC_FORMAT_FORMAT_1_2_H

#include "format/recording.h"

/* Adds the lanes of record i to its counters. */
void gpc_format_1_2_add_lanes(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_counters *counters);

/* True if this seq marks event `number` as set aside, in this or a later round of the ring. */
bool gpc_format_1_2_is_set_aside(uint64_t seq, uint64_t number, uint64_t n_slots);

#endif
