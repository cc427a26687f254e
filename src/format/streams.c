/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream has a small number in the recording, and a handle of the driver.  A user knows the handle if the program
 * prints it (torch.cuda.Stream.cuda_stream).  Default streams have names.
 */
#include "format/streams.h"

#include <stdlib.h>
#include <string.h>

#define LEGACY     "legacy"
#define PER_THREAD "per-thread"
#define NONE       "none"

bool gpc_recording_read_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpucache_stream *ret_stream)
{
	return number != 0 &&
	       gpc_recording_read(recording, GPUCACHE_REGION_STREAMS, number, ret_stream,
		       sizeof *ret_stream) == GPC_SLOT_OK &&
	       ret_stream->handle != 0;
}

void gpc_recording_add_stream(
	const struct gpc_recording *recording, uint32_t number, struct gpc_text *text)
{
	struct gpucache_stream stream;

	if (number == 0)
		gpc_text_add(text, "none named");
	else if (number == GPUCACHE_STREAM_OTHER)
		gpc_text_add(text, "others");
	else if (!gpc_recording_read_stream(recording, number, &stream))
		gpc_text_add(text, "%u", number);
	else if (stream.handle == GPUCACHE_STREAM_LEGACY)
		gpc_text_add(text, LEGACY);
	else if (stream.handle == GPUCACHE_STREAM_PER_THREAD)
		gpc_text_add(text, PER_THREAD);
	else
		gpc_text_add(text, "%u (0x%llx)", number, (unsigned long long)stream.handle);
}

bool gpc_stream_is_wish(const char *wanted)
{
	char *end;

	if (strcmp(wanted, LEGACY) == 0 || strcmp(wanted, PER_THREAD) == 0 ||
		strcmp(wanted, NONE) == 0)
		return true;
	return wanted[0] >= '0' && wanted[0] <= '9' && strtoull(wanted, &end, 0) > 0 && !*end;
}

bool gpc_recording_is_stream(
	const struct gpc_recording *recording, uint32_t number, const char *wanted)
{
	unsigned long long value = strtoull(wanted, NULL, 0);
	struct gpucache_stream stream;

	if (strcmp(wanted, NONE) == 0)
		return number == 0;
	if (number == 0)
		return false;
	if (value && value <= GPUCACHE_STREAM_OTHER)
		return value == number;
	if (!gpc_recording_read_stream(recording, number, &stream))
		return false;
	if (strcmp(wanted, LEGACY) == 0)
		return stream.handle == GPUCACHE_STREAM_LEGACY;
	if (strcmp(wanted, PER_THREAD) == 0)
		return stream.handle == GPUCACHE_STREAM_PER_THREAD;
	return value && stream.handle == value;
}
