/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only recordings of format 1.2 have: threads that freed and took a block again and again did so
 * without the lock of its context, and wrote that down apart.
 *
 *   lanes       behind the 576 bytes of a record of COUNTERS, eight of 64: what to add to it
 *   set aside   a number in EVENTS that was taken and not used: the highest bit of seq, plus the number
 *
 * Threads   As recording.h.
 * Failure   None.
 */
#ifndef GPC_FORMAT_FORMAT_1_2_H
#define GPC_FORMAT_FORMAT_1_2_H

#include "format/recording.h"

/* Makes the counters of record i, read from a file of 1.2, whole. */
void gpc_format_1_2_add_lanes(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_counters *counters);

/* Whether this seq says that event `number` was set aside, in this round of the ring or a later one. */
bool gpc_format_1_2_is_set_aside(uint64_t seq, uint64_t number, uint64_t n_slots);

#endif
