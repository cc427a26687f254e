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

/* Record `number` of STREAMS; false for 0, for GPUCACHE_STREAM_OTHER, and if there is no such record. */
bool gpc_recording_read_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpucache_stream *ret_stream);

/*
 * Appends "legacy", "per-thread", "3 (0x55d0c8)", "none named", or "others" for streams that found no room in the
 * recording.
 */
void gpc_recording_add_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpc_text *text);

/*
 * True if `wanted`, from the command line, is a number of STREAMS, a handle (0x55d0c8, or in decimal as Python prints
 * it), "legacy", "per-thread" or "none".
 */
bool gpc_stream_is_wish(const char *wanted);

/* True if such a `wanted` means stream `number`. */
bool gpc_recording_is_stream(
	const struct gpc_recording *recording, uint32_t number, const char *wanted);

#endif
