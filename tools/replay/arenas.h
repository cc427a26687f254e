/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the events that allocate or free an arena: memory that PyTorch cuts into tensors.  A caller that counts the
 * tensors leaves the arenas out, so that no byte counts twice.
 *
 *      a block live at the end    is an arena if it has the flag GPUCACHE_BLOCK_ARENA
 *      a block freed before       is an arena if the address of a tensor's event lies inside it
 *
 * Threads     One.
 * Failure     None.
 * Limits      Misses a freed arena if the ring has overwritten the events of all its tensors.
 */
#ifndef GPC_REPLAY_ARENAS_H
#define GPC_REPLAY_ARENAS_H

#include "format/recording.h"

/* Sets is_arena[i] if events[i] allocates or frees an arena.  All events are of device `ordinal`, oldest first. */
void gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena);

#endif
