/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes of the file select the reader: those of a recording, of a pickle or of JSON.  Everything else is read
 * as CSV, which zlib inflates if it is gzipped.
 */
#include "tools/gpumem-replay/trace_file.h"

#include <stdio.h>
#include <string.h>

#include "gpucache_format.h"

static enum gpc_status read_recording(
	const char *path, struct gpc_which which, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	struct gpc_recording *recording;
	enum gpc_status st = gpc_recording_open(path, &recording, why);

	if (st)
		return st;
	gpc_trace_from_recording(recording, which.device, which.of_tensors, ret_trace);
	ret_trace->path = path;
	gpc_recording_close(recording);
	return GPC_OK;
}

enum gpc_status gpc_trace_read(
	const char *path, struct gpc_which which, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	char head[sizeof GPUCACHE_FORMAT_MAGIC] = { 0 };
	FILE *file = fopen(path, "rb");
	size_t n = file ? fread(head, 1, sizeof head, file) : 0;

	if (file)
		(void)fclose(file);
	if (n == sizeof head && memcmp(head, GPUCACHE_FORMAT_MAGIC, sizeof head) == 0)
		return read_recording(path, which, why, ret_trace);
	/* A pickle of protocol 2 or later, or JSON. */
	if ((unsigned char)head[0] == 0x80 || head[0] == '{')
		return gpc_trace_read_snapshot(path, which.device, why, ret_trace);
	return gpc_trace_read_csv(path, why, ret_trace);
}
