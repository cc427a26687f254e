/* SPDX-License-Identifier: Apache-2.0 */
/* `check`: checks that a recording is intact, region by region. */
#include <string.h>

#include "tools/gpumem-report/output/page.h"

/* Counts the records or slots of a region, and for EVENTS also the unreadable events. */
static uint64_t count_records(
	const struct gpc_recording *rec, enum gpucache_region_kind kind, uint64_t *ret_n_holes)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	const char *line;
	size_t size;
	uint64_t n = 0;

	switch (kind) {
	case GPUCACHE_REGION_STACKS:
		return rec->n_stacks;
	case GPUCACHE_REGION_CODES:
		return rec->n_codes;
	case GPUCACHE_REGION_MODULES:
		return rec->n_modules;
	case GPUCACHE_REGION_TAGS:
		return rec->n_tags;
	case GPUCACHE_REGION_TEXT:
		while (gpc_recording_read_text(rec, n, &line, &size))
			n++;
		return n;
	case GPUCACHE_REGION_EVENTS:
		while (gpc_recording_next_event(rec, &cursor, &event))
			n++;
		*ret_n_holes = cursor.n_holes;
		return n;
	case GPUCACHE_REGION_PAGES:
		return rec->regions[kind].size;
	case GPUCACHE_REGION_NONE:
	case GPUCACHE_REGION_DEVICES:
	case GPUCACHE_REGION_COUNTERS:
	case GPUCACHE_REGION_SITES:
	case GPUCACHE_REGION_SEGMENTS:
	case GPUCACHE_REGION_BLOCKS:
	case GPUCACHE_REGION_HISTORY:
	case GPUCACHE_REGION_PEAKS:
	case GPUCACHE_REGION_OOMS:
	case GPUCACHE_REGION_TORCH:
	case GPUCACHE_REGION_STREAMS:
	case GPUCACHE_REGION_COUNT:
		break;
	}
	return rec->regions[kind].count;
}

static const char *word_of(const struct gpc_recording *rec, enum gpucache_region_kind kind)
{
	if (gpc_recording_has_problem(rec, kind))
		return "DAMAGED";
	return rec->regions[kind].present ? "whole" : "not there";
}

static const struct gpc_column columns[] = {
	{ "region", "region", -8 },
	{ "state", "state", -9 },
	{ "size_bytes", "bytes", 12 },
	{ "records", "records", 12 },
	{ NULL, "" },
	{ "torn" },
	{ "holes" },
	{ "dropped" },
};
static const struct gpc_section section = { "regions", NULL, GPC_COLUMNS(columns) };

static void show_region(
	struct gpc_document *doc, const struct gpc_recording *rec, enum gpucache_region_kind kind)
{
	const struct gpc_region *region = &rec->regions[kind];
	uint64_t n_dropped = gpc_recording_dropped(rec, kind);
	uint64_t n_holes = 0;
	uint64_t n = count_records(rec, kind, &n_holes);
	GPC_TEXT(text, 160);

	if (region->n_torn)
		gpc_text_add(&text, ", %s torn", gpc_show_count(region->n_torn));
	if (n_holes)
		gpc_text_add(
			&text, ", %s hole%s", gpc_show_count(n_holes), n_holes == 1 ? "" : "s");
	if (n_dropped)
		gpc_text_add(&text, ", %s dropped", gpc_show_count(n_dropped));
	gpc_document_row(doc, gpc_name(gpc_region_name(kind)), gpc_name(word_of(rec, kind)),
		gpc_bytes(region->size), gpc_count(n),
		gpc_sentence(text.buf + (text.len ? strlen(", ") : 0)), gpc_count(region->n_torn),
		gpc_count(n_holes), gpc_count(n_dropped));
}

enum gpc_exit gpc_cmd_check(struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpc_document *doc = report->doc;

	gpc_page_begin(report, "check");
	gpc_document_member(doc, "whole", gpc_truth(rec->n_problems == 0));
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "%s", rec->path);
	gpc_document_say(doc, "format %u.%u, %s, %s", (unsigned)rec->header.major,
		(unsigned)rec->header.minor, gpc_show_bytes(rec->header.file_size),
		gpc_state_word(rec->run_state));
	gpc_document_gap(doc);
	for (unsigned i = 1; i < GPUCACHE_REGION_COUNT; i++)
		show_region(doc, rec, (enum gpucache_region_kind)i);
	gpc_document_close(doc);
	gpc_page_notes(report);
	if (rec->n_problems == 0) {
		gpc_document_gap(doc);
		gpc_document_say(doc, "The recording is whole.");
	}
	gpc_document_end(doc);
	return GPC_EXIT_MADE;
}
