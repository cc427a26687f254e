/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `list`: the processes of a folder, a row for each GPU of each: jobs, then what belongs to none, newest first.
 *
 *      JOB      slurm-4711: 8 processes, 7 ended, 1 killed, 1 OUT OF MEMORY
 *      FIRST    rank 2 (gpu08, pid 5002) ran out of memory first, on GPU 0 at ...
 *      ODD      rank 5 (gpu08, pid 5005) is the odd one out: ...
 *      state     to median rank     pid  GPU         peak  verdict     host
 *      ended           0 B    0    5000  0      71.29 GiB              gpu07
 *
 * Of a job with more rows than fit, text has those that failed, then those farthest from the median.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/array.h"
#include "tools/gpumem-report/job/compare.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/target.h"
#include "why/why.h"

/* Rows of a job in text. */
#define N_ROWS 16

/* Later failures that text names. */
#define N_LATER 4

/* Callers shown after a call site, because the site may be a wrapper. */
#define N_CALLERS 3

/* Appends the site's callers in the program. */
static void add_callers(const struct gpc_stack_frames *stack, struct gpc_text *text)
{
	unsigned n = 0;

	for (size_t i = (size_t)stack->site + 1; i < stack->n && n < N_CALLERS; i++) {
		if (stack->frames[i].is_library)
			continue;
		gpc_text_add(text, " < ");
		gpc_frame_describe(&stack->frames[i], false, text);
		n++;
	}
}

/* Appends the call site of a stack; reopens the rank's recording to resolve it. */
static void add_site(const struct gpc_report *report, const struct gpc_job_row *rank,
	uint32_t stack, struct gpc_text *text)
{
	struct gpc_report one = { .options = report->options };
	const struct gpc_stack_frames *found;

	if (gpc_target_open_file(&one, rank->path) != GPC_EXIT_MADE)
		return;
	one.frames = gpc_frames_create(one.recording, &report->options->places);
	gpc_frames_site(one.frames, stack, text);
	found = stack ? gpc_frames_find(one.frames, stack) : NULL;
	if (found && found->site >= 0)
		add_callers(found, text);
	gpc_frames_destroy(one.frames);
	gpc_recording_close(one.recording);
}

/* The current time.  $SOURCE_DATE_EPOCH replaces it, so that tests print the same ages at any time. */
static uint64_t now_ns(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");

	return fixed && *fixed ? strtoull(fixed, NULL, 10) * 1000000000u : gpc_clock_realtime_ns();
}

/* ---- the findings of a job ---- */

/* True if row i is the first of its process; rows of one process are adjacent. */
static bool is_process(const struct gpc_job_row *rows, size_t i)
{
	return i == 0 || strcmp(rows[i].path, rows[i - 1].path) != 0;
}

static void say_job(struct gpc_document *doc, const struct gpc_job_row *rows, size_t n)
{
	size_t n_states[4] = { 0 };
	size_t n_processes = 0;
	size_t n_failed = 0;
	int world = 0;
	GPC_TEXT(text, 300);

	for (size_t i = 0; i < n; i++) {
		n_processes += is_process(rows, i);
		n_states[rows[i].state] += is_process(rows, i);
		n_failed += rows[i].oom.number != 0;
		world = rows[i].header.world_size > world ? rows[i].header.world_size : world;
	}
	for (unsigned i = 0; i < 4; i++)
		if (n_states[i])
			gpc_text_add(&text, ", %s %s", gpc_show_count(n_states[i]),
				gpc_state_word((enum gpc_run_state)i));
	if (n_failed)
		gpc_text_add(&text, ", %s OUT OF MEMORY", gpc_show_count(n_failed));
	gpc_document_say(doc, "%s%s%s process%s%s", rows[0].header.job,
		rows[0].header.job[0] ? ": " : "", gpc_show_count(n_processes),
		n_processes == 1 ? "" : "es", text.buf);
	if (world > 0 && (size_t)world > n_processes)
		gpc_document_say(doc, "the job has %d ranks: %d left no recording here", world,
			world - (int)n_processes);
	if (rows[0].header.command[0])
		gpc_document_say(doc, "%s", rows[0].header.command);
	gpc_document_member(doc, "world_size", gpc_number(gpc_unless_zero((uint64_t)world)));
}

/* Members by which a row is found again. */
static void tell_row(struct gpc_document *doc, const struct gpc_job_row *row)
{
	gpc_document_member(doc, "path", gpc_name(row->path));
	gpc_document_member(doc, "rank", gpc_number(gpc_unless_negative(row->header.rank)));
	gpc_document_member(doc, "pid", gpc_number(row->header.pid));
	gpc_document_member(doc, "host", gpc_name(row->header.host));
	gpc_document_member(doc, "ordinal", gpc_number((uint64_t)row->device.ordinal));
}

static void show_first(const struct gpc_report *report, const struct gpc_findings *found,
	const struct gpc_job_row *rows, size_t n)
{
	static const struct gpc_section section = { "first_failure", "FIRST", .flags = GPC_OBJECT };
	const struct gpc_job_row *first = found->first;
	struct gpc_document *doc = report->doc;
	size_t n_later = 0;
	GPC_TEXT(where, 400);
	GPC_TEXT(who, 200);

	if (!first) {
		gpc_document_member(doc, "first_failure", gpc_blank());
		return;
	}
	add_site(report, first, first->oom.stack, &where);
	gpc_job_add_who(first, &who);
	gpc_document_open(doc, &section);
	tell_row(doc, first);
	gpc_document_member(doc, "number", gpc_number(first->oom.number));
	gpc_document_member(doc, "failed", gpc_time(first->oom.realtime_ns));
	gpc_document_member(doc, "verdict", gpc_name(gpc_cause_word(first->oom.verdict)));
	gpc_document_member(doc, "strength", gpc_name(gpc_strength_word(first->oom.strength)));
	gpc_document_member(doc, "requested_bytes", gpc_bytes(first->oom.requested));
	gpc_document_member(doc, "where", gpc_name(where.buf));
	gpc_document_say(doc,
		"%s ran out of memory first, on GPU %d at %s: %s (%s), %s asked for by %s", who.buf,
		first->device.ordinal, gpc_show_time(first->oom.realtime_ns),
		gpc_cause_word(first->oom.verdict), gpc_strength_word(first->oom.strength),
		gpc_show_bytes(first->oom.requested), where.buf);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].oom.number || &rows[i] == first || n_later++ >= N_LATER)
			continue;
		gpc_text_clear(&who);
		gpc_job_add_who(&rows[i], &who);
		gpc_document_say(doc, "%s later: %s",
			gpc_show_duration(rows[i].oom.realtime_ns - first->oom.realtime_ns),
			who.buf);
	}
	if (n_later > N_LATER)
		gpc_document_say(doc, "and %s more", gpc_show_count(n_later - N_LATER));
	gpc_document_say(doc, "gpumem-report oom %s", first->path);
	gpc_document_close(doc);
}

static void show_odd(const struct gpc_report *report, const struct gpc_findings *found)
{
	static const struct gpc_section section = { "odd_one_out", "ODD", .flags = GPC_OBJECT };
	struct gpc_document *doc = report->doc;
	GPC_TEXT(where, 400);
	GPC_TEXT(text, 700);

	if (!found->odd) {
		gpc_document_member(doc, "odd_one_out", gpc_blank());
		return;
	}
	gpc_job_add_who(found->odd, &text);
	gpc_text_add(&text, " is the odd one out: %s at its peak, where the median is %s",
		gpc_show_bytes(found->odd->peak_live_bytes), gpc_show_bytes(found->median_bytes));
	if (found->odd_site.key) {
		add_site(report, found->odd_site_of, found->odd_site.stack, &where);
		gpc_text_add(&text, "; %s %s of that at %s", gpc_show_bytes(found->odd_site.bytes),
			found->is_odd_more ? "more" : "less", where.buf);
	}
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "%s", text.buf);
	tell_row(doc, found->odd);
	gpc_document_member(doc, "is_more", gpc_truth(found->is_odd_more));
	gpc_document_member(doc, "peak_live_bytes", gpc_bytes(found->odd->peak_live_bytes));
	gpc_document_member(doc, "where", gpc_name(where.buf));
	gpc_document_member(doc, "difference_bytes", gpc_bytes(found->odd_site.bytes));
	gpc_document_close(doc);
}

/* ---- the table ---- */

/* Orders failed rows first, then the other rows by their distance from the median, farthest first. */
static int by_interest(const void *left, const void *right)
{
	const struct gpc_job_row *a = left;
	const struct gpc_job_row *b = right;

	return GPC_ORDER(b->oom.number != 0, a->oom.number != 0)
		       ?: GPC_ORDER(b->distance, a->distance)
		       ?: GPC_ORDER(a->header.rank, b->header.rank)
		       ?: GPC_ORDER(a->device.ordinal, b->device.ordinal);
}

static void show_row(struct gpc_document *doc, const struct gpc_job_row *row,
	struct gpc_cell second, const char *last)
{
	const struct gpucache_device *device = &row->device;
	bool has_failed = row->oom.number != 0;
	bool has_gpu = device->ordinal >= 0;
	GPC_TEXT(gpu, 32);

	if (has_gpu)
		gpc_text_add(&gpu, "%d", device->ordinal);
	if (device->physical && device->physical - 1 != (uint64_t)device->ordinal)
		gpc_text_add(&gpu, " (%u)", (unsigned)(device->physical - 1));
	gpc_document_row(doc, gpc_name(gpc_state_word(row->state)), second,
		gpc_number(gpc_unless_negative(row->header.rank)), gpc_number(row->header.pid),
		gpc_name(gpu.buf), has_gpu ? gpc_bytes(row->peak_live_bytes) : gpc_blank(),
		has_gpu ? gpc_bytes(row->peak_bytes) : gpc_blank(), gpc_bytes(row->live_bytes),
		gpc_name(has_failed    ? gpc_cause_word(row->oom.verdict)
			 : row->n_ooms ? "recovered"
				       : ""),
		gpc_name(last), gpc_name(has_failed ? gpc_strength_word(row->oom.strength) : ""),
		gpc_count(row->n_ooms), gpc_time(has_failed ? row->oom.realtime_ns : 0),
		gpc_name(row->program), gpc_name(row->header.command), gpc_name(row->header.host),
		gpc_name(row->path), gpc_time(row->header.start_realtime_ns),
		gpc_name(row->header.exe), gpc_name(row->header.version),
		gpc_number(gpc_unless_zero(row->header.driver_version)),
		gpc_bytes(row->header.file_size), gpc_number(gpc_unless_negative(device->ordinal)),
		gpc_name(device->name), gpc_name(device->uuid),
		gpc_number(gpc_unless_negative((int64_t)device->physical - 1)),
		gpc_name(device->pci_bus_id));
}

static void show_table(
	struct gpc_document *doc, struct gpc_job_row *rows, size_t n, uint64_t median, bool is_job)
{
	const struct gpc_column columns[] = {
		{ "state", "state", -6 },
		{ NULL, is_job ? "to median" : "started ago", 12, .from = 72 },
		{ "rank", "rank", 4 },
		{ "pid", "pid", 7 },
		{ NULL, "GPU", -5 },
		{ "peak_live_bytes", "peak", 10 },
		{ "peak_bytes", "reserved", 10, .from = 88 },
		{ "live_bytes", "live", 10, .from = 100 },
		{ "verdict", "verdict", -10 },
		{ NULL, is_job ? "host" : "program" },
		{ "strength" },
		{ "ooms" },
		{ "failed" },
		{ "program" },
		{ "command" },
		{ "host" },
		{ "path" },
		{ "started" },
		{ "exe" },
		{ "library_version" },
		{ "driver_version" },
		{ "file_bytes" },
		{ "ordinal" },
		{ "name" },
		{ "uuid" },
		{ "physical_index" },
		{ "pci_bus_id" },
	};
	const struct gpc_section section = { "gpus", is_job ? NULL : "RUNS", GPC_COLUMNS(columns) };
	bool is_whole = gpc_document_is_whole(doc);
	size_t limit = is_whole ? n : doc->limit ? doc->limit : is_job ? N_ROWS : n;
	uint64_t now = now_ns();

	if (n > limit && is_job)
		qsort(rows, n, sizeof *rows, by_interest);
	gpc_document_open(doc, &section);
	gpc_document_gap(doc);
	if (!is_job)
		gpc_document_say(doc, "newest first");
	for (size_t i = 0; i < n && i < limit; i++)
		show_row(doc, &rows[i],
			is_job ? gpc_change(median, rows[i].peak_live_bytes)
			       : gpc_duration(
					 gpc_bytes_less(now, rows[i].header.start_realtime_ns)),
			is_job ? rows[i].header.host : rows[i].program);
	if (n > limit)
		gpc_document_say(doc, "... and %s more%s", gpc_show_count(n - limit),
			is_job ? ", closer to the median" : "");
	gpc_document_close(doc);
}

static void show_job(const struct gpc_report *report, struct gpc_job_row *rows, size_t n)
{
	static const struct gpc_section element = { .flags = GPC_OBJECT };
	static const struct gpc_section head = { NULL, "JOB", .flags = GPC_MEMBERS };
	bool is_job = gpc_job_is_one(rows);
	struct gpc_document *doc = report->doc;
	struct gpc_findings found = { 0 };

	gpc_document_open(doc, &element);
	gpc_document_member(doc, "job", gpc_name(rows[0].header.job));
	if (is_job) {
		found = gpc_job_compare(rows, n);
		for (size_t i = 0; i < n; i++)
			rows[i].distance =
				gpc_distance(rows[i].peak_live_bytes, found.median_bytes);
		gpc_document_open(doc, &head);
		say_job(doc, rows, n);
		gpc_document_close(doc);
		gpc_document_member(doc, "median_peak_live_bytes", gpc_bytes(found.median_bytes));
		show_first(report, &found, rows, n);
		show_odd(report, &found);
	}
	show_table(doc, rows, n, found.median_bytes, is_job);
	gpc_document_close(doc);
}

/* ---- the folders ---- */

struct unread {
	char *path;
	char why[96];
};

struct listed {
	char *folders[GPC_DIRECTORY_MAX_DIRS]; /* that were looked into */
	unsigned n_folders;
	struct gpc_job job;
	struct unread *unread;
	size_t n_unread;
	size_t room;
};

static void add_unread(struct listed *listed, const char *path, const char *why)
{
	struct unread *row;

	gpc_array_grow(&listed->unread, sizeof *row, listed->n_unread, &listed->room);
	row = &listed->unread[listed->n_unread++];
	row->path = gpc_copy(path);
	gpc_format(row->why, sizeof row->why, "%s", why);
}

static void add_folder(struct listed *listed, const struct gpc_report *report)
{
	for (unsigned i = 0; i < report->directory.n_dirs; i++)
		if (report->directory.is_there[i] && listed->n_folders < GPC_DIRECTORY_MAX_DIRS)
			listed->folders[listed->n_folders++] = gpc_copy(report->directory.dirs[i]);
	for (size_t i = 0; i < report->directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &report->directory.entries[i];
		struct gpc_report one = { .options = report->options };
		GPC_TEXT(why, 96);

		if (entry->status != GPC_OK) {
			add_unread(listed, entry->path, entry->why);
		} else if (gpc_recording_open(entry->path, &one.recording, &why) != GPC_OK) {
			add_unread(listed, entry->path, why.buf);
		} else {
			gpc_job_add(&listed->job, &one);
			gpc_recording_close(one.recording);
		}
	}
}

static enum gpc_exit add_target(
	struct listed *listed, const struct gpc_report *report, const char *target)
{
	struct gpc_options options = *report->options;
	struct gpc_report one = { .options = &options };
	bool is_folder = !target || gpc_target_is_folder(target);
	enum gpc_exit code;

	options.target = target;
	code = gpc_target_open(&one, is_folder ? GPC_NEEDS_DIRECTORY : GPC_NEEDS_RECORDING);
	if (code == GPC_EXIT_MADE && is_folder)
		add_folder(listed, &one);
	else if (code == GPC_EXIT_MADE)
		gpc_job_add(&listed->job, &one);
	if (one.recording && one.recording->n_problems) {
		gpc_complain("%s is damaged", target);
		code = GPC_EXIT_DAMAGED;
	}
	gpc_recording_close(one.recording);
	gpc_directory_close(&one.directory);
	return code;
}

static void show_folders(struct gpc_document *doc, const struct listed *listed)
{
	static const struct gpc_column columns[] = { { "folder", "" } };
	static const struct gpc_section section = { "folders", "IN", GPC_COLUMNS(columns),
		.flags = GPC_FLAT | GPC_BESIDE };

	gpc_document_open(doc, &section);
	for (unsigned i = 0; i < listed->n_folders; i++) {
		gpc_document_row(doc, gpc_sentence(listed->folders[i]));
		free(listed->folders[i]);
	}
	gpc_document_close(doc);
}

static void show_unread(struct gpc_document *doc, const struct listed *listed)
{
	static const struct gpc_column columns[] = { { "path" }, { "problem" }, { NULL, "" } };
	static const struct gpc_section section = { "unread", "UNREAD", GPC_COLUMNS(columns),
		.flags = GPC_BESIDE };

	gpc_document_open(doc, &section);
	for (size_t i = 0; i < listed->n_unread; i++) {
		const struct unread *row = &listed->unread[i];
		GPC_TEXT(text, 300);

		gpc_text_add(&text, "%s: %s", gpc_base_name(row->path), row->why);
		gpc_document_row(
			doc, gpc_name(row->path), gpc_name(row->why), gpc_sentence(text.buf));
		free(row->path);
	}
	gpc_document_close(doc);
}

enum gpc_exit gpc_cmd_list(struct gpc_report *report)
{
	static const struct gpc_section jobs = { "jobs" };
	const struct gpc_options *options = report->options;
	struct gpc_document *doc = report->doc;
	enum gpc_exit worst = GPC_EXIT_MADE;
	struct listed listed = { 0 };
	unsigned i = 0;

	do {
		enum gpc_exit code = add_target(
			&listed, report, options->n_targets ? options->targets[i] : NULL);

		worst = code > worst ? code : worst;
	} while (++i < options->n_targets);
	if (!listed.job.n && !listed.n_unread)
		return worst;
	gpc_job_sort(&listed.job);
	gpc_page_begin(report, "list");
	gpc_document_open(doc, &jobs);
	for (size_t first = 0, end; first < listed.job.n; first = end) {
		end = gpc_job_end(&listed.job, first);
		show_job(report, &listed.job.rows[first], end - first);
	}
	gpc_document_close(doc);
	show_unread(doc, &listed);
	show_folders(doc, &listed);
	gpc_document_end(doc);
	free(listed.unread);
	gpc_job_fini(&listed.job);
	return worst;
}
