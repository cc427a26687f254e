/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the live blocks per section, grouped by thread or stream. */
#include "tools/gpumem-report/holders/by_thread.h"

#include <stdlib.h>

#include "format/memory.h"
#include "format/streams.h"
#include "tools/gpumem-report/output/page.h"

/* What the blocks are grouped by. */
enum asker {
	THREADS,
	STREAMS,
};

static const struct gpc_column thread_columns[] = {
	GPC_HOLDER_COLUMNS,
	{ "thread" },
	{ NULL, "thread" },
};
static const struct gpc_column stream_columns[] = {
	GPC_HOLDER_COLUMNS,
	{ "stream" },
	{ "name", "stream" },
	{ "handle" },
	{ "destroyed" },
};
static const struct gpc_section sections[] = {
	[THREADS] = { "threads", "THREADS", GPC_COLUMNS(thread_columns), 10 },
	[STREAMS] = { "streams", "STREAMS", GPC_COLUMNS(stream_columns), 10 },
};

/* False if the section would tell nothing: one thread, or the legacy stream alone. */
static bool is_telling(
	const struct gpc_report *report, enum asker asker, const struct gpc_row *rows, size_t n)
{
	struct gpucache_stream stream;

	if (asker == THREADS)
		return n > 1;
	for (size_t i = 0; i < n; i++)
		if (rows[i].id &&
			!(gpc_recording_read_stream(report->recording, rows[i].id, &stream) &&
				stream.handle == GPUCACHE_STREAM_LEGACY))
			return true;
	return false;
}

static void describe(
	const struct gpc_report *report, enum asker asker, uint32_t id, struct gpc_text *text)
{
	if (asker == STREAMS)
		gpc_recording_add_stream(report->recording, id, text);
	else
		gpc_text_add(
			text, "%u%s", id, id == report->recording->header.pid ? " (main)" : "");
}

/* Returns the rows of a device, biggest first; the caller frees them. */
static struct gpc_row *make_rows(
	const struct gpc_report *report, enum asker asker, int32_t ordinal, size_t *ret_n)
{
	uint64_t room = report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_row *rows = gpc_new(room, sizeof *rows);
	struct gpucache_block block;
	size_t n = 0;

	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);)
		if (gpc_recording_can_leak(&block))
			rows[n++] = (struct gpc_row){
				.id = asker == STREAMS ? GPUCACHE_BLOCK_STREAM(block.flags)
						       : block.thread,
				.bytes = block.requested,
				.n_blocks = 1,
			};
	*ret_n = gpc_rows_unite(rows, n);
	gpc_rows_by_bytes(rows, *ret_n);
	return rows;
}

static void show_row(const struct gpc_report *report, struct gpc_document *doc, enum asker asker,
	const struct gpc_row *row, uint64_t total)
{
	struct gpucache_stream stream = { .handle = GPUCACHE_UNKNOWN };
	bool is_known =
		asker == STREAMS && gpc_recording_read_stream(report->recording, row->id, &stream);
	GPC_TEXT(text, 64);

	describe(report, asker, row->id, &text);
	if (asker == THREADS)
		gpc_document_row(doc, GPC_HOLDER_CELLS(row->bytes, total, row->n_blocks),
			gpc_number(row->id), gpc_name(text.buf));
	else
		gpc_document_row(doc, GPC_HOLDER_CELLS(row->bytes, total, row->n_blocks),
			gpc_number(row->id), gpc_name(text.buf), gpc_number(stream.handle),
			is_known ? gpc_truth(stream.end_ns != 0) : gpc_blank());
}

static void show_section(
	const struct gpc_report *report, enum asker asker, int32_t ordinal, const char *moment)
{
	struct gpc_document *doc = report->doc;
	size_t n;
	struct gpc_row *rows = make_rows(report, asker, ordinal, &n);
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total = gpc_bytes_add(total, rows[i].bytes);
	if (gpc_document_is_whole(doc) || is_telling(report, asker, rows, n)) {
		gpc_document_open(doc, &sections[asker]);
		gpc_document_say(doc, "%s live by the %s, %s", gpc_show_bytes(total),
			asker == THREADS ? "thread that asked for it"
					 : "stream it was asked for on",
			moment);
		for (size_t i = 0; i < n; i++)
			show_row(report, doc, asker, &rows[i], total);
		gpc_document_close(doc);
	}
	free(rows);
}

void gpc_asker_rows_show(const struct gpc_report *report, int32_t ordinal, const char *moment)
{
	show_section(report, THREADS, ordinal, moment);
	show_section(report, STREAMS, ordinal, moment);
}
