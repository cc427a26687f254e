/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `diff A B`: functions that hold more or less in B than in A, two recordings, at the same moment (--at).
 *
 *      change        before         after   function
 *      +200.00 MiB   100.00 MiB     300.00 MiB   step  train.py < main, via Linear.forward
 *
 * Lines of one function share a row, because line numbers differ between commits.  A change is the difference of the
 * printed numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/holders/call_paths.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/output/map.h"
#include "tools/gpumem-report/target.h"

#define DEFAULT_ROWS 15

/* Many programs allocate through wrappers, so rows name this many callers. */
#define CALLERS 2

struct change {
	char *name;
	uint64_t bytes[2]; /* before, after */
	struct gpc_rounded rounded[2];
};

struct changes {
	struct change *rows;
	size_t n;
	size_t room;
	struct gpc_memo numbers; /* the index of a row, by name */
	uint64_t totals[2];
};

static void changes_fini(struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		free(changes->rows[i].name);
	free(changes->rows);
	gpc_memo_fini(&changes->numbers);
	*changes = (struct changes){ 0 };
}

static void add(struct changes *changes, const char *name, uint64_t bytes, unsigned side)
{
	bool is_new;
	size_t number = gpc_memo_number(&changes->numbers, name, &is_new);
	struct change *row;

	if (is_new) {
		gpc_array_grow(&changes->rows, sizeof *row, changes->n, &changes->room);
		changes->rows[changes->n++] = (struct change){ .name = gpc_copy(name) };
	}
	row = &changes->rows[number];
	row->bytes[side] = gpc_bytes_add(row->bytes[side], bytes);
}

/* Appends the allocating function, its callers, and the library function that it called. */
static void describe(const struct gpc_path *path, struct gpc_text *text)
{
	const char *last = path->site + 1 < path->n ? path->names[path->site + 1] : NULL;

	for (size_t i = 0; i <= CALLERS && i <= path->site; i++) {
		const char *name = path->names[path->site - i];
		size_t len = i ? strcspn(name, " ") : gpc_path_function_length(name);

		gpc_text_add(text, "%s%.*s", i ? " < " : "", (int)len, name);
	}
	if (last)
		gpc_text_add(text, "%s%s", last[0] == '(' ? ", " : ", via ", last);
}

static void add_side(
	struct changes *changes, struct gpc_report *report, int32_t ordinal, unsigned side)
{
	struct gpc_moment moment;
	struct gpc_paths paths;

	gpc_moment_find(&moment, report, ordinal);
	gpc_paths_create(&paths, report, &moment);
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

static uint64_t distance(const struct change *change)
{
	return gpc_distance(change->bytes[0], change->bytes[1]);
}

static int compare_distances(const void *left, const void *right)
{
	const struct change *a = left;
	const struct change *b = right;

	return GPC_ORDER(distance(b), distance(a)) ?: strcmp(a->name, b->name);
}

/* "+1.50 GiB": the difference of the numbers as printed. */
static const char *show_change(const struct gpc_rounded rounded[2], char *buf, size_t size)
{
	double before =
		(double)rounded[0].hundredths * (double)(UINT64_C(1) << (10 * rounded[0].unit));
	double after =
		(double)rounded[1].hundredths * (double)(UINT64_C(1) << (10 * rounded[1].unit));
	double change = after > before ? after - before : before - after;
	struct gpc_rounded shown = gpc_rounded_of((uint64_t)(change / 100));

	/* If all three have one unit, a reader can subtract the printed digits, so the change is their difference. */
	if (rounded[0].unit == rounded[1].unit && shown.unit == rounded[0].unit)
		shown.hundredths = rounded[0].hundredths > rounded[1].hundredths
					   ? rounded[0].hundredths - rounded[1].hundredths
					   : rounded[1].hundredths - rounded[0].hundredths;
	snprintf(buf, size, "%s%s",
		change < 0.5     ? ""
		: after > before ? "+"
				 : "-",
		gpc_show_rounded(shown));
	return buf;
}

/* Rounds the rows of each side so that they add up, as printed, to the side's total. */
static void round_sides(struct changes *changes)
{
	uint64_t *parts = gpc_new(changes->n, sizeof *parts);
	struct gpc_rounded *rounded = gpc_new(changes->n, sizeof *rounded);

	for (unsigned side = 0; side < 2; side++) {
		for (size_t i = 0; i < changes->n; i++)
			parts[i] = changes->rows[i].bytes[side];
		gpc_rounded_parts(
			gpc_rounded_of(changes->totals[side]), parts, changes->n, rounded);
		for (size_t i = 0; i < changes->n; i++)
			changes->rows[i].rounded[side] = rounded[i];
	}
	free(parts);
	free(rounded);
}

/* Merges the rows beyond the limit into one row, "all others". */
static void keep(struct changes *changes, size_t limit)
{
	struct change *others = &changes->rows[limit];

	if (changes->n <= limit + 1)
		return;
	for (size_t i = limit + 1; i < changes->n; i++) {
		for (unsigned side = 0; side < 2; side++)
			others->bytes[side] =
				gpc_bytes_add(others->bytes[side], changes->rows[i].bytes[side]);
		free(changes->rows[i].name);
	}
	free(others->name);
	others->name = gpc_copy("all others");
	changes->n = limit + 1;
}

static void print_changes(const struct gpc_report *report, struct changes *changes, int32_t ordinal)
{
	struct gpc_rounded totals[2] = { gpc_rounded_of(changes->totals[0]),
		gpc_rounded_of(changes->totals[1]) };
	const struct gpc_paper *paper = &report->paper;
	char change[40];

	keep(changes, gpc_report_limit(report, DEFAULT_ROWS));
	gpc_paper_section(paper, "DIFF", "GPU %d: %s before, %s after: %s", ordinal,
		gpc_show_rounded(totals[0]), gpc_show_rounded(totals[1]),
		show_change(totals, change, sizeof change));
	if (changes->n == 0)
		return;
	round_sides(changes);
	fprintf(paper->out, "%s%13s %12s %12s  %s%s\n", gpc_paper_ink(paper, GPC_INK_DIM), "change",
		"before", "after", "function", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < changes->n; i++) {
		const struct change *row = &changes->rows[i];
		int used = fprintf(paper->out, "%13s %12s %12s  ",
			show_change(row->rounded, change, sizeof change),
			gpc_show_rounded(row->rounded[0]), gpc_show_rounded(row->rounded[1]));

		fprintf(paper->out, "%.*s\n", paper->width - used, row->name);
	}
}

static struct json_object *device_json(
	const struct changes *changes, const struct gpucache_device *device)
{
	struct json_object *object = gpc_json_device(device);
	struct json_object *array;

	gpc_json_bytes(object, "before_bytes", changes->totals[0]);
	gpc_json_bytes(object, "after_bytes", changes->totals[1]);
	array = gpc_json_add(object, "changes", json_object_new_array());
	for (size_t i = 0; i < changes->n; i++) {
		struct json_object *row = gpc_json_row(array);

		gpc_json_text(row, "function", changes->rows[i].name);
		gpc_json_bytes(row, "before_bytes", changes->rows[i].bytes[0]);
		gpc_json_bytes(row, "after_bytes", changes->rows[i].bytes[1]);
	}
	return object;
}

/* Shows the changes of every GPU; both recordings are open. */
static void show(struct gpc_report *before, struct gpc_report *after)
{
	struct json_object *root = before->options->json ? gpc_json_begin(after, "diff") : NULL;
	struct json_object *devices = NULL;
	struct gpucache_device device;

	if (root) {
		gpc_json_text(root, "before", before->recording->path);
		devices = gpc_json_add(root, "devices", json_object_new_array());
	} else {
		gpc_paper_head(&before->paper, "before: %s", before->recording->path);
		gpc_paper_head(&before->paper, "after:  %s", after->recording->path);
	}
	for (int32_t i = 0; i < GPC_MAX_ORDINAL; i++) {
		struct changes changes = { 0 };
		bool is_there = gpc_recording_find_device(after->recording, i, &device) ||
				gpc_recording_find_device(before->recording, i, &device);

		if (!is_there || !gpc_report_wants(before, i))
			continue;
		add_side(&changes, before, i, 0);
		add_side(&changes, after, i, 1);
		if (changes.n)
			qsort(changes.rows, changes.n, sizeof *changes.rows, compare_distances);
		if (root)
			json_object_array_add(devices, device_json(&changes, &device));
		else if (changes.n)
			print_changes(before, &changes, i);
		changes_fini(&changes);
	}
	if (root)
		gpc_json_end(before, root);
}

enum gpc_exit gpc_cmd_diff(struct gpc_report *report)
{
	struct gpc_options options = *report->options;
	struct gpc_report after = { .options = &options };
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
