/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parts of recordings that only format 1.2 had.  Its library let a thread free and reallocate one block without the
 * lock of the context, and counted these calls apart.
 *
 *   lanes       eight of 64 bytes, behind the 576 of a record of COUNTERS, to which a reader adds them
 *   set aside   the number of an event that was reserved and never written: seq has its highest bit set
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

/* True if `seq`, from the slot of event `number`, marks that event, or a later one of the slot, as set aside. */
bool gpc_format_1_2_is_set_aside(uint64_t seq, uint64_t number, uint64_t n_slots);

#endif
