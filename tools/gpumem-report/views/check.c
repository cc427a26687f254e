/* SPDX-License-Identifier: Apache-2.0 */
/* `check`: checks that a recording is intact, region by region. */
#include "tools/gpumem-report/output/json.h"

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

static void print_text(struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpc_paper *paper = &report->paper;

	fprintf(paper->out, "%s\nformat %u.%u, %s, %s\n\n", rec->path, (unsigned)rec->header.major,
		(unsigned)rec->header.minor, gpc_show_bytes(rec->header.file_size),
		gpc_state_word(rec->run_state));
	for (unsigned i = 1; i < GPUCACHE_REGION_COUNT; i++) {
		const enum gpucache_region_kind kind = (enum gpucache_region_kind)i;
		const struct gpc_region *region = &rec->regions[kind];
		uint64_t n_dropped = gpc_recording_dropped(rec, kind);
		uint64_t n_holes = 0;
		GPC_TEXT(text, 160);

		gpc_text_add(&text, "%-10s %-10s %11s %12s records", gpc_region_name(kind),
			word_of(rec, kind), gpc_show_bytes(region->size),
			gpc_show_count(count_records(rec, kind, &n_holes)));
		if (region->n_torn)
			gpc_text_add(&text, ", %s torn", gpc_show_count(region->n_torn));
		if (n_holes)
			gpc_text_add(&text, ", %s hole%s", gpc_show_count(n_holes),
				n_holes == 1 ? "" : "s");
		if (n_dropped)
			gpc_text_add(&text, ", %s dropped", gpc_show_count(n_dropped));
		gpc_paper_head(paper, "%s", text.buf);
	}
	gpc_report_print_notes(report);
	if (rec->n_problems == 0)
		fprintf(paper->out, "\nThe recording is whole.\n");
}

enum gpc_exit gpc_cmd_check(struct gpc_report *report)
{
	if (report->options->json) {
		/* gpc_json_begin() has listed the problems, as in every view. */
		struct json_object *root = gpc_json_begin(report, "check");

		gpc_json_bool(root, "whole", report->recording->n_problems == 0);
		gpc_json_end(report, root);
	} else {
		print_text(report);
	}
	return GPC_EXIT_MADE;
}
