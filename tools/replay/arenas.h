/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the events of arenas, memory that PyTorch cuts into tensors: their bytes count for the tensors.
 *
 *      live at the end    an arena if marked GPUCACHE_BLOCK_ARENA
 *      freed before       an arena if an event of a tensor lies inside it
 *
 * Threads     One.
 * Failure     None.
 * Limits      Misses a freed arena if the ring no longer has an event of any of its tensors.
 */
#ifndef GPC_REPLAY_ARENAS_H
#define GPC_REPLAY_ARENAS_H

#include "format/recording.h"

/* Sets is_arena[i] if events[i] allocates or frees an arena.  The events are of one device, in order. */
void gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena);

#endif
