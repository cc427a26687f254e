/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams named by a recording (since 1.5), and their printed form.
 *
 * Threads   Any.
 * Failure   A number that the recording does not explain is printed as a number.
 */
#ifndef GPC_FORMAT_STREAMS_H
#define GPC_FORMAT_STREAMS_H

#include "format/recording.h"

/* Record `number` of STREAMS; false for 0, for GPUCACHE_STREAM_OTHER, and where it is not there. */
bool gpc_recording_read_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpucache_stream *ret_stream);

/*
 * Appends "legacy", "per-thread", "3 (0x55d0c8)", "none named", "others": those that found no room in the recording.
 */
void gpc_recording_add_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpc_text *text);

/*
 * True if a person means this stream by `wanted`: its number, its handle (0x55d0c8, or what Python prints of it), legacy,
 * per-thread, or none.  is_wish: whether it is one of these at all.
 */
bool gpc_stream_is_wish(const char *wanted);
bool gpc_recording_is_stream(
	const struct gpc_recording *recording, uint32_t number, const char *wanted);

#endif
