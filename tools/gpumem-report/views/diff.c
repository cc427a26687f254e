/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `diff A B`: functions that hold more or less in B than in A, two recordings, at the same moment: that of --at; without,
 * the usual one (moment.h), and the peak if only one of them failed.
 *
 *      change        before         after   function
 *      +200.00 MiB   100.00 MiB     300.00 MiB   step  train.py < main, via Linear.forward
 *
 * Lines of one function share a row, because line numbers differ between commits.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/holders/groups.h"
#include "tools/gpumem-report/holders/moment.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/target.h"

/* Many programs allocate through wrappers, so rows name this many callers. */
#define CALLERS 2

struct changes {
	struct gpc_groups functions; /* what they hold in B */
	uint64_t totals[2];          /* before, after */
	const char *moments[2];      /* "when it ended" */
};

static void add(struct changes *changes, const char *name, uint64_t bytes, unsigned side)
{
	struct gpc_group *row = gpc_groups_add(&changes->functions, name, side ? bytes : 0, 0, 0);

	row->before = gpc_bytes_add(row->before, side ? 0 : bytes);
}

/*
 * Appends the allocating function, its callers, and the library function that it called; of a context or module only
 * what it is, as some moments know no more.
 */
static void describe(const struct gpc_path *path, struct gpc_text *text)
{
	const char *last = path->site + 1 < path->n ? path->names[path->site + 1] : NULL;

	if (last && last[0] == '(') {
		gpc_text_add(text, "%s", last);
		return;
	}
	for (size_t i = 0; i <= CALLERS && i <= path->site; i++) {
		const char *name = path->names[path->site - i];
		size_t len = i ? strcspn(name, " ") : gpc_path_function_length(name);

		gpc_text_add(text, "%s%.*s", i ? " < " : "", (int)len, name);
	}
	if (last)
		gpc_text_add(text, ", via %s", last);
}

static void add_side(struct changes *changes, const struct gpc_report *report,
	const struct gpc_moment *moment, unsigned side)
{
	struct gpc_paths paths;

	gpc_paths_create(&paths, report, moment);
	changes->moments[side] = gpc_moment_words(moment, report);
	changes->totals[side] = paths.total_bytes;
	for (size_t i = 0; i < paths.n; i++) {
		GPC_TEXT(text, 1200);

		describe(&paths.rows[i], &text);
		add(changes, text.buf, paths.rows[i].bytes, side);
	}
	if (paths.rest_bytes)
		add(changes, "(not listed)", paths.rest_bytes, side);
	gpc_paths_fini(&paths);
}

static void find_moments(
	struct gpc_moment moments[2], const struct gpc_report *const reports[2], int32_t ordinal)
{
	struct gpc_options at_peak = *reports[0]->options;

	at_peak.moment = GPC_AT_PEAK;
	for (unsigned i = 0; i < 2; i++)
		gpc_moment_find(&moments[i], reports[i], ordinal);
	if (moments[0].at == moments[1].at)
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct gpc_report report = *reports[i];

		report.options = &at_peak;
		gpc_moment_find(&moments[i], &report, ordinal);
	}
}

static void compare(
	struct changes *changes, const struct gpc_report *const reports[2], int32_t ordinal)
{
	struct gpc_moment moments[2];

	find_moments(moments, reports, ordinal);
	for (unsigned i = 0; i < 2; i++)
		add_side(changes, reports[i], &moments[i], i);
}

static int compare_distances(const void *left, const void *right)
{
	const struct gpc_group *a = left;
	const struct gpc_group *b = right;

	return GPC_ORDER(gpc_distance(b->before, b->bytes), gpc_distance(a->before, a->bytes))
		       ?: strcmp(a->name, b->name);
}

static const struct gpc_column columns[] = {
	{ "change_bytes", "change", 13, GPC_SUMS },
	{ "before_bytes", "before", 12, GPC_SUMS },
	{ "after_bytes", "after", 12, GPC_SUMS },
	{ "function", "function" },
};
static const struct gpc_section section = { "changes", "DIFF", GPC_COLUMNS(columns), 15 };

static void show_changes(struct gpc_document *doc, const struct changes *changes,
	const struct gpucache_device *device)
{
	const uint64_t *totals = changes->totals;
	GPC_TEXT(change, 40);

	gpc_page_open_device(doc, device);
	gpc_document_member(doc, "before_moment", gpc_name(changes->moments[0]));
	gpc_document_member(doc, "after_moment", gpc_name(changes->moments[1]));
	gpc_document_member(doc, "before_bytes", gpc_bytes(totals[0]));
	gpc_document_member(doc, "after_bytes", gpc_bytes(totals[1]));
	gpc_cell_write(&change, gpc_change(totals[0], totals[1]));
	gpc_document_open(doc, &section);
	if (changes->functions.n && strcmp(changes->moments[0], changes->moments[1]) == 0)
		gpc_document_say(doc, "GPU %d, %s: %s before, %s after: %s", device->ordinal,
			changes->moments[0], gpc_show_bytes(totals[0]), gpc_show_bytes(totals[1]),
			change.buf);
	else if (changes->functions.n)
		gpc_document_say(doc, "GPU %d: %s before, %s, %s after, %s: %s", device->ordinal,
			gpc_show_bytes(totals[0]), changes->moments[0], gpc_show_bytes(totals[1]),
			changes->moments[1], change.buf);
	for (size_t i = 0; i < changes->functions.n; i++) {
		const struct gpc_group *row = &changes->functions.rows[i];

		gpc_document_row(doc, gpc_change(row->before, row->bytes), gpc_bytes(row->before),
			gpc_bytes(row->bytes), gpc_sentence(row->name));
	}
	gpc_document_close(doc);
	gpc_document_close(doc);
}

/* Shows the changes of every GPU; both recordings are open. */
static void show(struct gpc_report *before, struct gpc_report *after)
{
	const struct gpc_report *const reports[] = { before, after };
	struct gpc_document *doc = after->doc;
	struct gpucache_device device;

	gpc_page_begin(after, "diff");
	gpc_document_member(doc, "before", gpc_name(before->recording->path));
	gpc_document_say(doc, "before: %s", before->recording->path);
	gpc_document_say(doc, "after:  %s", after->recording->path);
	gpc_document_open(doc, &gpc_page_devices);
	for (int32_t i = 0; i < GPC_MAX_ORDINAL; i++) {
		struct changes changes = { 0 };
		bool is_there = gpc_recording_find_device(after->recording, i, &device) ||
				gpc_recording_find_device(before->recording, i, &device);

		if (!is_there || !gpc_report_wants(before, i))
			continue;
		compare(&changes, reports, i);
		if (changes.functions.n)
			qsort(changes.functions.rows, changes.functions.n,
				sizeof *changes.functions.rows, compare_distances);
		show_changes(doc, &changes, &device);
		gpc_groups_fini(&changes.functions);
	}
	gpc_document_close(doc);
	gpc_document_end(doc);
}

enum gpc_exit gpc_cmd_diff(struct gpc_report *report)
{
	struct gpc_options options = *report->options;
	struct gpc_report after = { .options = &options, .doc = report->doc };
	enum gpc_exit code;

	options.target = options.targets[1];
	code = gpc_target_open(&after, GPC_NEEDS_RECORDING);
	if (code != GPC_EXIT_MADE)
		return code;
	after.frames = gpc_frames_create(after.recording, &options.places);
	show(report, &after);
	gpc_frames_destroy(after.frames);
	gpc_recording_close(after.recording);
	gpc_directory_close(&after.directory);
	return code;
}
