/* SPDX-License-Identifier: Apache-2.0 */
/* gpumem-report: runs the command on each named recording, and returns its exit code. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/gpumem-report/arguments.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/holders/leaks.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/target.h"
#include "tools/lib/clean_stream.h"

/* A stream that replaces control characters (clean_stream.h); for binary formats a plain one. */
static FILE *stream_of(const struct gpc_options *options, int fd)
{
	return gpc_export_is_binary(options) ? fdopen(fd, "w") : gpc_clean_stream(fd);
}

static enum gpc_exit open_output(const struct gpc_options *options, FILE **ret_out)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (options->force ? O_TRUNC : O_EXCL);
	int fd;

	/* With --watch, live/watch.c opens options->output itself, for each of its writes. */
	if (!options->output || options->watch_ns) {
		*ret_out = gpc_export_is_binary(options) ? stream_of(options, dup(STDOUT_FILENO))
							 : stdout;
		return *ret_out ? GPC_EXIT_MADE : GPC_EXIT_IO;
	}
	fd = open(options->output, flags, 0666);
	*ret_out = NULL;
	if (fd < 0 && errno == EEXIST) {
		gpc_complain("%s exists; -f overwrites it", options->output);
		return GPC_EXIT_IO;
	}
	if (fd < 0 || !(*ret_out = stream_of(options, fd))) {
		gpc_complain("%s: %s", options->output, strerror(errno));
		return GPC_EXIT_IO;
	}
	return GPC_EXIT_MADE;
}

/* True if the recording has what --fail-on names. */
static bool is_condition_true(const struct gpc_report *report)
{
	if (!report->recording)
		return false;
	if (report->options->fail_on_oom && gpc_report_count_ooms(report, false))
		return true;
	return report->options->fail_on_leak && report->recording->run_state != GPC_RUN_ALIVE &&
	       gpc_leaks_exist(report);
}

/* Names the damaged regions on standard error; the view has printed the details. */
static void complain_damage(const struct gpc_recording *rec)
{
	GPC_TEXT(names, 256);

	for (unsigned kind = 0; kind < GPUCACHE_REGION_COUNT; kind++)
		if (gpc_recording_has_problem(rec, (enum gpucache_region_kind)kind))
			gpc_text_add(&names, "%s%s", names.len ? ", " : "",
				gpc_region_name((enum gpucache_region_kind)kind));
	gpc_complain("%s is damaged (%s); what could be read was printed", rec->path, names.buf);
}

/* Complains and returns true if the recording lacks the GPU of -d; false if that is unknown, as DEVICES is damaged. */
static bool is_device_missing(const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	int32_t ordinal = report->options->device;
	struct gpucache_device device;
	int32_t n = 0;

	if (!rec || ordinal < 0 || gpc_recording_find_device(report->recording, ordinal, &device) ||
		gpc_recording_has_problem(rec, GPUCACHE_REGION_DEVICES))
		return false;
	while (gpc_recording_find_device(report->recording, n, &device))
		n++;
	if (n)
		gpc_complain("no GPU %d in %s, which has 0 to %d", ordinal, rec->path, n - 1);
	else
		gpc_complain("no GPU %d in %s, which has none", ordinal, rec->path);
	return true;
}

static enum gpc_exit run(struct gpc_report *report, const struct gpc_command *command)
{
	struct gpc_map taken_stacks = { 0 };
	enum gpc_exit code;

	if (is_device_missing(report))
		return GPC_EXIT_USAGE;
	if (report->recording)
		report->frames = gpc_frames_create(report->recording, &report->options->places);
	report->taken_stacks = &taken_stacks;
	code = command->run(report);
	if (code == GPC_EXIT_MADE && is_condition_true(report))
		code = GPC_EXIT_CONDITION;
	if (report->recording && report->recording->n_problems) {
		complain_damage(report->recording);
		code = GPC_EXIT_DAMAGED;
	}
	report->taken_stacks = NULL;
	gpc_map_fini(&taken_stacks);
	gpc_frames_destroy(report->frames);
	return code;
}

/* Codes are numbered by severity. */
static enum gpc_exit worse(enum gpc_exit a, enum gpc_exit b)
{
	return a > b ? a : b;
}

/* For --fail-on of a folder: checks the recordings that are not shown, and names those that fail the check. */
static enum gpc_exit check_others(const struct gpc_report *report)
{
	enum gpc_exit code = GPC_EXIT_MADE;

	for (size_t i = 0; i < report->directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &report->directory.entries[i];
		struct gpc_report other = { .options = report->options };
		enum gpc_exit found;

		if (strcmp(entry->path, report->recording->path) == 0)
			continue;
		found = gpc_target_open_file(&other, entry->path);
		if (found == GPC_EXIT_MADE && other.recording->n_problems) {
			gpc_complain("%s is damaged", entry->path);
			found = GPC_EXIT_DAMAGED;
		} else if (found == GPC_EXIT_MADE) {
			other.frames = gpc_frames_create(other.recording, &report->options->places);
			if (is_condition_true(&other)) {
				gpc_complain("--fail-on also found one in %s", entry->path);
				found = GPC_EXIT_CONDITION;
			}
			gpc_frames_destroy(other.frames);
		}
		gpc_recording_close(other.recording);
		code = worse(code, found);
	}
	return code;
}

/* Runs the command on options->target.  Opens the output only after a recording: a failed call leaves no empty file. */
static enum gpc_exit run_on_target(
	struct gpc_options *options, const struct gpc_command *command, FILE **out)
{
	struct gpc_report report = { .options = options };
	enum gpc_exit code = gpc_target_open(&report, command->needs);
	struct gpc_document doc;

	if (code == GPC_EXIT_MADE && !*out)
		code = open_output(options, out);
	if (code == GPC_EXIT_MADE) {
		gpc_page_init(&doc, *out, options);
		report.out = *out;
		report.doc = &doc;
		code = run(&report, command);
		if (report.recording && options->target &&
			(options->fail_on_oom || options->fail_on_leak))
			code = worse(code, check_others(&report));
	}
	gpc_recording_close(report.recording);
	gpc_directory_close(&report.directory);
	return code;
}

/* Runs the command on each recording of the folder options->target. */
static enum gpc_exit run_on_folder(
	struct gpc_options *options, const struct gpc_command *command, FILE **out)
{
	enum gpc_exit code = GPC_EXIT_MADE;
	struct gpc_directory directory;

	gpc_directory_open(&directory, options->target);
	if (directory.n_entries == 0) {
		gpc_complain("%s: there is no recording", options->target);
		code = GPC_EXIT_NOT_FOUND;
	}
	for (size_t i = 0; i < directory.n_entries; i++) {
		options->target = directory.entries[i].path;
		code = worse(code, run_on_target(options, command, out));
	}
	gpc_directory_close(&directory);
	return code;
}

/* What is shown of a run: later failures may be consequences of the first. */
#define MOST_OF_RUN 3

/*
 * Runs `oom` on the failures of the run --run.  Says nothing if there are none: gpucache-run --wait asks after each program
 * that failed, whatever it failed of.
 */
static enum gpc_exit run_on_failures(
	struct gpc_options *options, const struct gpc_command *command, FILE **out)
{
	const unsigned most = options->json ? 1 : MOST_OF_RUN;
	struct gpc_target_failure failures[MOST_OF_RUN];
	enum gpc_exit code = GPC_EXIT_MADE;
	struct gpc_directory directory;
	unsigned n;

	gpc_directory_open(&directory, options->n_targets ? options->targets[0] : NULL);
	n = gpc_target_find_failures(&directory, options->run, failures, most);
	if (n == 0)
		code = GPC_EXIT_NOT_FOUND;
	for (unsigned i = 0; i < n && i < most; i++) {
		if (i && *out)
			fputs("\n", *out);
		options->target = failures[i].path;
		code = worse(code, run_on_target(options, command, out));
	}
	if (n > most)
		gpc_complain("%u more of this run ran out of memory later (gpumem-report list)",
			n - most);
	gpc_directory_close(&directory);
	return code;
}

static enum gpc_exit run_on_all(
	struct gpc_options *options, const struct gpc_command *command, FILE **out)
{
	const bool is_of_all = command->needs == GPC_NEEDS_RECORDINGS;
	enum gpc_exit code = GPC_EXIT_MADE;
	unsigned i = 0;

	do {
		options->target = options->n_targets ? options->targets[i] : NULL;
		if (i && *out && !is_of_all)
			fputs("\n", *out);
		if (is_of_all && gpc_target_is_folder(options->target))
			code = worse(code, run_on_folder(options, command, out));
		else
			code = worse(code, run_on_target(options, command, out));
	} while (++i < options->n_targets && command->needs != GPC_NEEDS_TWO_RECORDINGS &&
		 command->needs != GPC_NEEDS_FOLDERS);
	if (is_of_all && *out) {
		struct gpc_document doc;
		struct gpc_report report = { .options = options, .out = *out, .doc = &doc };

		gpc_page_init(&doc, *out, options);
		code = worse(code, command->run(&report));
	}
	return code;
}

int main(int argc, char **argv)
{
	struct gpc_options options = { 0 };
	const struct gpc_command *command;
	FILE *out = NULL;
	enum gpc_exit code = GPC_EXIT_MADE;

	/*
	 * A recording is mostly holes.  Memory for the next one comes from mmap: its pages are zero already, while
	 * reused memory would have to be cleared.
	 */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	/* `| head` shall end us without a message, even if our parent ignores SIGPIPE, as Python does. */
	signal(SIGPIPE, SIG_DFL);
	gpc_clean_standard();
	switch (gpc_arguments_read(argc, argv, &options, &command)) {
	case GPC_ARGUMENTS_DONE:
		break;
	case GPC_ARGUMENTS_BAD:
		code = GPC_EXIT_USAGE;
		break;
	case GPC_ARGUMENTS_RUN:
		gpc_target_sort_out_number(&options, command);
		code = options.run ? run_on_failures(&options, command, &out)
				   : run_on_all(&options, command, &out);
		break;
	}
	if (out && (fflush(out) != 0 || ferror(out)) && errno != EPIPE) {
		gpc_complain("cannot write: %s", strerror(errno));
		code = GPC_EXIT_IO;
	}
	if (out && out != stdout)
		(void)fclose(out);
	free(options.targets);
	return (int)code;
}
