/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events are of memory that PyTorch cut tensors from: its bytes are the tensors', not its own.
 *
 *      live at the end, marked GPUCACHE_BLOCK_ARENA   one
 *      given back before                              one, where an event of a tensor lies within it
 *
 * Threads     One.
 * Failure     False: no memory.
 * Limits      One that was given back, and all of whose tensors the ring has forgotten, is not known.
 */
#ifndef GPC_REPLAY_ARENAS_H
#define GPC_REPLAY_ARENAS_H

#include "format/recording.h"

/* Sets is_arena[i] for the events, of one device and in their order, that take or give back an arena. */
bool gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena);

#endif
