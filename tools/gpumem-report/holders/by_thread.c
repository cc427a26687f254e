/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the live blocks per section, grouped by thread or stream. */
#include "tools/gpumem-report/holders/by_thread.h"

#include <stdlib.h>

#include "format/memory.h"
#include "format/streams.h"
#include "tools/gpumem-report/output/groups.h"
#include "tools/gpumem-report/output/json.h"

#define DEFAULT_ROWS 10u

/* What the blocks are grouped by. */
enum asker {
	THREADS,
	STREAMS,
};

static const struct {
	const char *section;
	const char *by;
	const char *head;
} words[] = {
	[THREADS] = { "THREADS", "thread that asked for it", "thread" },
	[STREAMS] = { "STREAMS", "stream it was asked for on", "stream" },
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

static void add_stream(struct json_object *row, const struct gpc_report *report, uint32_t id)
{
	struct gpucache_stream stream;
	GPC_TEXT(text, 64);

	gpc_recording_add_stream(report->recording, id, &text);
	gpc_json_bytes(row, "stream", id);
	gpc_json_text(row, "name", text.buf);
	if (!gpc_recording_read_stream(report->recording, id, &stream))
		return;
	gpc_json_bytes(row, "handle", stream.handle);
	gpc_json_bool(row, "destroyed", stream.end_ns != 0);
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

static void print_rows(const struct gpc_report *report, enum asker asker,
	const struct gpc_row *rows, size_t n, uint64_t total)
{
	struct gpc_groups groups = { .rows = gpc_new(n, sizeof *groups.rows),
		.total_bytes = total };

	/* Not gpc_groups_add: streams of two contexts may have the same name. */
	for (; groups.n < n; groups.n++) {
		const struct gpc_row *row = &rows[groups.n];
		GPC_TEXT(text, 64);

		describe(report, asker, row->id, &text);
		groups.rows[groups.n] = (struct gpc_group){
			.name = gpc_copy(text.buf), .bytes = row->bytes, .n_blocks = row->n_blocks
		};
	}
	gpc_groups_print(
		&groups, report, gpc_report_limit(report, DEFAULT_ROWS), words[asker].head, NULL);
	gpc_groups_fini(&groups);
}

static void print_section(
	const struct gpc_report *report, enum asker asker, int32_t ordinal, const char *moment)
{
	size_t n;
	uint64_t total = 0;
	struct gpc_row *rows = make_rows(report, asker, ordinal, &n);

	for (size_t i = 0; i < n; i++)
		total = gpc_bytes_add(total, rows[i].bytes);
	if (is_telling(report, asker, rows, n)) {
		gpc_paper_section(&report->paper, words[asker].section, "%s live by the %s, %s",
			gpc_show_bytes(total), words[asker].by, moment);
		print_rows(report, asker, rows, n, total);
	}
	free(rows);
}

void gpc_asker_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment)
{
	print_section(report, THREADS, ordinal, moment);
	print_section(report, STREAMS, ordinal, moment);
}

static void add_array(struct json_object *object, const char *key, const struct gpc_report *report,
	enum asker asker, int32_t ordinal)
{
	struct json_object *array = gpc_json_add(object, key, json_object_new_array());
	unsigned limit = report->options->limit;
	size_t n;
	struct gpc_row *rows = make_rows(report, asker, ordinal, &n);

	for (size_t i = 0; i < n && (!limit || i < limit); i++) {
		struct json_object *row = gpc_json_row(array);

		if (asker == STREAMS)
			add_stream(row, report, rows[i].id);
		else
			gpc_json_bytes(row, "thread", rows[i].id);
		gpc_json_bytes(row, "live_bytes", rows[i].bytes);
		gpc_json_bytes(row, "blocks", rows[i].n_blocks);
	}
	free(rows);
}

void gpc_asker_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal)
{
	add_array(object, "threads", report, THREADS, ordinal);
	add_array(object, "streams", report, STREAMS, ordinal);
}
