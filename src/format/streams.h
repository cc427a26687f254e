/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of a recording, and their names for people.
 *
 * Threads   Any.
 * Failure   A stream without a record is printed as its number.
 */
#ifndef GPC_FORMAT_STREAMS_H
#define GPC_FORMAT_STREAMS_H

#include "format/recording.h"

/* Reads record `number` of STREAMS.  False for 0, for GPUCACHE_STREAM_OTHER, and if there is no such record. */
bool gpc_recording_read_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpucache_stream *ret_stream);

/* Appends "legacy", "per-thread", "3 (0x55d0c8)", "none named" for 0, or "others" for GPUCACHE_STREAM_OTHER. */
void gpc_recording_add_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpc_text *text);

/*
 * True if `wanted`, from the command line, can name a stream: by its number in STREAMS, by its handle (0x55d0c8, or in
 * decimal as Python prints it), or as "legacy", "per-thread" or "none".
 */
bool gpc_stream_is_wish(const char *wanted);

/* True if `wanted`, for which gpc_stream_is_wish is true, names stream `number`. */
bool gpc_recording_is_stream(
	const struct gpc_recording *recording, uint32_t number, const char *wanted);

#endif
