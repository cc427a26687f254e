/* SPDX-License-Identifier: Apache-2.0 */
/* gpumem-report: finds the recording, runs the command, and answers with an exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gpumem-report/arguments.h"

static enum gpc_exit exit_of(enum gpc_status status)
{
	return status == GPC_IO || status == GPC_NO_METADATA ? GPC_EXIT_IO : GPC_EXIT_DAMAGED;
}

static enum gpc_exit open_recording(struct gpc_report *report, const char *path)
{
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);
	enum gpc_status status = gpc_recording_open(path, &report->recording, &text);

	if (status == GPC_OK)
		return GPC_EXIT_MADE;
	if (status == GPC_IO && errno == ENOENT) {
		gpc_complain("%s: there is no such file; `gpumem-report list` shows what there is",
			path);
		return GPC_EXIT_NOT_FOUND;
	}
	gpc_complain("%s: %s", path, why);
	return exit_of(status);
}

static enum gpc_exit complain_nothing(const struct gpc_directory *directory, const char *what)
{
	gpc_complain("no recording%s%s found; looked in", what ? " of pid " : "", what ? what : "");
	for (unsigned i = 0; i < directory->n_dirs; i++)
		fprintf(stderr, "  %s%s\n", directory->dirs[i],
			directory->is_there[i] ? "" : " (not there, or not yours)");
	fprintf(stderr,
		"Record a run with `gpucache-run PROGRAM`, or name the file: gpumem-report FILE\n");
	return GPC_EXIT_NOT_FOUND;
}

/*
 * The newest recording of a directory, or of the usual ones; of process `pid` where that is not
 * NULL.
 */
static enum gpc_exit open_newest(
	struct gpc_report *report, const char *directory_path, const char *pid)
{
	const struct gpc_directory_entry *entry;
	enum gpc_exit code;

	if (gpc_directory_open(&report->directory, directory_path) != GPC_OK) {
		gpc_complain("no memory for the list of recordings");
		return GPC_EXIT_IO;
	}
	entry = gpc_directory_find(&report->directory, pid ? (uint32_t)strtoul(pid, NULL, 10) : 0);
	code = entry ? open_recording(report, entry->path)
		     : complain_nothing(&report->directory, pid);
	gpc_directory_close(&report->directory);
	return code;
}

static bool is_pid(const char *target)
{
	return target && *target && target[strspn(target, "0123456789")] == '\0' &&
	       access(target, F_OK) != 0;
}

/* `oom 2`: a number that no recording has as its pid is the number of the failure. */
static void sort_out_number(struct gpc_options *options, const struct gpc_command *command)
{
	struct gpc_directory directory;

	if (command->run != gpc_cmd_oom || !is_pid(options->target) ||
		gpc_directory_open(&directory, NULL) != GPC_OK)
		return;
	if (!gpc_directory_find(&directory, (uint32_t)strtoul(options->target, NULL, 10))) {
		options->number = strtoull(options->target, NULL, 10);
		options->target = NULL;
	}
	gpc_directory_close(&directory);
}

static enum gpc_exit find_recording(struct gpc_report *report)
{
	const char *target = report->options->target;
	struct stat st;

	if (!target) {
		report->is_newest_by_default = true;
		return open_newest(report, NULL, NULL);
	}
	if (is_pid(target))
		return open_newest(report, NULL, target);
	if (stat(target, &st) == 0 && S_ISDIR(st.st_mode))
		return open_newest(report, target, NULL);
	return open_recording(report, target);
}

static enum gpc_exit find_list(struct gpc_report *report)
{
	if (gpc_directory_open(&report->directory, report->options->target) != GPC_OK) {
		gpc_complain("no memory for the list of recordings");
		return GPC_EXIT_IO;
	}
	if (report->directory.n_entries == 0)
		return complain_nothing(&report->directory, NULL);
	return GPC_EXIT_MADE;
}

static enum gpc_exit find_target(struct gpc_report *report, enum gpc_needs needs)
{
	switch (needs) {
	case GPC_NEEDS_RECORDING:
		return find_recording(report);
	case GPC_NEEDS_DIRECTORY:
		return find_list(report);
	case GPC_NEEDS_NOTHING:
		break;
	}
	return GPC_EXIT_MADE;
}

static enum gpc_exit open_output(const struct gpc_options *options, FILE **ret_out)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (options->force ? O_TRUNC : O_EXCL);
	int fd;

	if (!options->output)
		return GPC_EXIT_MADE;
	fd = open(options->output, flags, 0666);
	if (fd < 0 && errno == EEXIST) {
		gpc_complain("%s is there already; -f overwrites it", options->output);
		return GPC_EXIT_IO;
	}
	if (fd < 0 || !(*ret_out = fdopen(fd, "w"))) {
		gpc_complain("%s: %s", options->output, strerror(errno));
		return GPC_EXIT_IO;
	}
	return GPC_EXIT_MADE;
}

/* What --fail-on asked for. */
static bool is_condition_true(const struct gpc_report *report)
{
	unsigned n_fatal = 0;
	unsigned n_recovered = 0;
	uint64_t bytes;

	if (!report->recording)
		return false;
	gpc_report_count_ooms(report, &n_fatal, &n_recovered);
	if (report->options->fail_on_oom && n_fatal)
		return true;
	return report->options->fail_on_leak && report->recording->run_state != GPC_RUN_ALIVE &&
	       gpc_report_count_live(report, -1, &bytes) > 0;
}

/* Names the regions; what is wrong with each stands in the report. */
static void complain_damage(const struct gpc_recording *rec)
{
	char buf[256];
	struct gpc_text names = gpc_text_init(buf, sizeof buf);

	for (unsigned kind = 0; kind < GPUCACHE_REGION_COUNT; kind++)
		if (gpc_recording_has_problem(rec, (enum gpucache_region_kind)kind))
			gpc_text_add(&names, "%s%s", names.len ? ", " : "",
				gpc_region_name((enum gpucache_region_kind)kind));
	gpc_complain("%s is damaged (%s); what could be read was printed", rec->path, names.buf);
}

static enum gpc_exit run(struct gpc_report *report, const struct gpc_command *command, FILE *out)
{
	enum gpc_exit code;

	gpc_paper_init(&report->paper, out, report->options->colour);
	if (report->recording) {
		report->frames = gpc_frames_create(report->recording, &report->options->places);
		if (!report->frames) {
			gpc_complain("no memory for stacks");
			return GPC_EXIT_IO;
		}
	}
	code = command->run(report);
	if (code == GPC_EXIT_MADE && is_condition_true(report))
		code = GPC_EXIT_CONDITION;
	if (report->recording && report->recording->n_problems) {
		complain_damage(report->recording);
		code = GPC_EXIT_DAMAGED;
	}
	gpc_frames_destroy(report->frames);
	return code;
}

int main(int argc, char **argv)
{
	struct gpc_options options;
	const struct gpc_command *command;
	struct gpc_report report = { .options = &options };
	FILE *out = stdout;
	enum gpc_exit code;

	/* `| head` ends us quietly, also where our parent ignores the signal as Python does. */
	signal(SIGPIPE, SIG_DFL);
	switch (gpc_arguments_read(argc, argv, &options, &command)) {
	case GPC_ARGUMENTS_DONE:
		return GPC_EXIT_MADE;
	case GPC_ARGUMENTS_BAD:
		return GPC_EXIT_USAGE;
	case GPC_ARGUMENTS_RUN:
		break;
	}
	sort_out_number(&options, command);
	code = find_target(&report, command->needs);
	if (code == GPC_EXIT_MADE)
		code = open_output(&options, &out);
	if (code == GPC_EXIT_MADE) {
		code = run(&report, command, out);
		if ((fflush(out) != 0 || ferror(out)) && errno != EPIPE) {
			gpc_complain("cannot write: %s", strerror(errno));
			code = GPC_EXIT_IO;
		}
	}
	gpc_recording_close(report.recording);
	gpc_directory_close(&report.directory);
	return code;
}
