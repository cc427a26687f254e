/* SPDX-License-Identifier: Apache-2.0 */
/* A call of gpc_document_say() may show eight quantities: there are as many buffers. */
#include "tools/gpumem-report/output/show.h"

#include <string.h>
#include <time.h>

static const char *show(struct gpc_cell cell)
{
	static char buffers[8][40];
	static unsigned next;
	struct gpc_text text;

	next = (next + 1) % 8;
	text = gpc_text_init(buffers[next], sizeof buffers[next]);
	gpc_cell_write(&text, cell);
	return text.buf;
}

const char *gpc_show_bytes(uint64_t bytes)
{
	return show(gpc_bytes(bytes));
}

const char *gpc_show_count(uint64_t count)
{
	return show(gpc_count(count));
}

const char *gpc_show_duration(uint64_t ns)
{
	return show(gpc_duration(ns));
}

const char *gpc_show_share(uint64_t part, uint64_t whole)
{
	return show(gpc_share(part, whole));
}

const char *gpc_show_time(uint64_t realtime_ns)
{
	return show(gpc_time(gpc_local_ns(realtime_ns)));
}

uint64_t gpc_local_ns(uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		return realtime_ns;
	return realtime_ns + (uint64_t)tm.tm_gmtoff * 1000000000;
}
