/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number that is no file is a pid; of a folder the most useful recording is taken (format/directory.h); anything else
 * is a path.
 */
#include "tools/gpumem-report/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gpumem-report/source.h"

static enum gpc_exit exit_of(enum gpc_status status)
{
	return status == GPC_IO || status == GPC_NO_METADATA ? GPC_EXIT_IO : GPC_EXIT_DAMAGED;
}

enum gpc_exit gpc_target_open_file(struct gpc_report *report, const char *path)
{
	GPC_TEXT(text, 200);
	enum gpc_status status = gpc_source_open(path, &report->recording, &text);

	if (status == GPC_OK)
		return GPC_EXIT_MADE;
	if (status == GPC_IO && errno == ENOENT) {
		gpc_complain("%s: there is no such file; `gpumem-report list` shows what there is",
			path);
		return GPC_EXIT_NOT_FOUND;
	}
	gpc_complain("%s: %s", path, text.buf);
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

static void say_others(const struct gpc_directory *directory)
{
	GPC_TEXT(text, 200);

	for (unsigned i = 0; i < directory->n_others; i++) {
		gpc_text_add(&text, i ? ", " : "");
		gpc_owner_add(directory->others[i], &text);
	}
	if (directory->n_of_others)
		gpc_complain("%u of other users (%s) left out; to read one, name its file",
			directory->n_of_others, text.buf);
}

/* Says what else was there. */
static void say_choice(const struct gpc_report *report, const struct gpc_directory_choice *choice)
{
	static const char *const reasons[] = {
		[GPC_WORTH_NOTHING] = "the newest; none used a GPU",
		[GPC_WORTH_USED] = "the newest that used a GPU",
		[GPC_WORTH_OOM] = "the one that ran out of memory",
	};
	const char *target = report->options->target;
	char failed[64];

	if (choice->n_recordings < 2)
		return;
	snprintf(failed, sizeof failed, "the first of %u that ran out of memory", choice->n_failed);
	gpc_complain("%s: %s; of %u recordings, %u newer (gpumem-report list%s%s)",
		choice->entry->path, choice->n_failed > 1 ? failed : reasons[choice->worth],
		choice->n_recordings, choice->n_newer, target ? " " : "", target ? target : "");
}

/* Opens the most useful recording of a directory, or of the usual ones. */
static enum gpc_exit open_worthiest(struct gpc_report *report, const char *directory_path)
{
	struct gpc_directory_choice choice;
	enum gpc_exit code;

	gpc_directory_open(&report->directory, directory_path);
	say_others(&report->directory);
	choice = gpc_directory_choose(&report->directory, directory_path == NULL);
	if (!choice.entry)
		return complain_nothing(&report->directory, NULL);
	code = gpc_target_open_file(report, choice.entry->path);
	if (code == GPC_EXIT_MADE)
		say_choice(report, &choice);
	return code;
}

static enum gpc_exit open_newest_of_pid(struct gpc_report *report, const char *pid)
{
	const struct gpc_directory_entry *entry;
	enum gpc_exit code;

	gpc_directory_open(&report->directory, NULL);
	entry = gpc_directory_find(&report->directory, (uint32_t)strtoul(pid, NULL, 10));
	code = entry ? gpc_target_open_file(report, entry->path)
		     : complain_nothing(&report->directory, pid);
	gpc_directory_close(&report->directory);
	return code;
}

static bool is_pid(const char *target)
{
	return target && *target && target[strspn(target, "0123456789")] == '\0' &&
	       access(target, F_OK) != 0;
}

void gpc_target_sort_out_number(struct gpc_options *options, const struct gpc_command *command)
{
	struct gpc_directory directory;

	if (command->run != gpc_cmd_oom || options->n_targets != 1 || !is_pid(options->targets[0]))
		return;
	gpc_directory_open(&directory, NULL);
	if (!gpc_directory_find(&directory, (uint32_t)strtoul(options->targets[0], NULL, 10))) {
		options->number = strtoull(options->targets[0], NULL, 10);
		options->n_targets = 0;
	}
	gpc_directory_close(&directory);
}

bool gpc_target_is_folder(const char *target)
{
	struct stat st;

	return target && stat(target, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum gpc_exit find_recording(struct gpc_report *report)
{
	const char *target = report->options->target;

	if (!target) {
		report->is_newest_by_default = true;
		return open_worthiest(report, NULL);
	}
	if (is_pid(target))
		return open_newest_of_pid(report, target);
	if (gpc_target_is_folder(target))
		return open_worthiest(report, target);
	return gpc_target_open_file(report, target);
}

static enum gpc_exit find_list(struct gpc_report *report)
{
	gpc_directory_open(&report->directory, report->options->target);
	say_others(&report->directory);
	if (report->directory.n_entries == 0)
		return complain_nothing(&report->directory, NULL);
	return GPC_EXIT_MADE;
}

enum gpc_exit gpc_target_open(struct gpc_report *report, enum gpc_needs needs)
{
	switch (needs) {
	case GPC_NEEDS_RECORDING:
	case GPC_NEEDS_RECORDINGS:
	case GPC_NEEDS_TWO_RECORDINGS:
		return find_recording(report);
	case GPC_NEEDS_DIRECTORY:
		return find_list(report);
	case GPC_NEEDS_NOTHING:
		break;
	}
	return GPC_EXIT_MADE;
}
