/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the recording that a word of the command line means, or the default one.
 *
 *      FILE          that file                     -       standard input
 *      PID           the newest of that process
 *      DIR, nothing  the first that ran out of memory, else the newest that used a GPU, else the newest: a job may
 *                    have started idle workers after the process that matters
 *
 * If there were other candidates, a line on standard error gives their number.
 *
 * Threads     One.
 * Failure     A message on standard error, and an exit code.
 * Limits      Those of format/directory.h, and GPC_RECORDING_MAX_BYTES for an unpacked recording.
 */
#ifndef GPC_REPORT_TARGET_H
#define GPC_REPORT_TARGET_H

#include "tools/gpumem-report/report.h"

/* Opens report->recording, or lists report->directory, as the command needs. */
enum gpc_exit gpc_target_open(struct gpc_report *report, enum gpc_needs needs);

/* Opens the file `path` as report->recording. */
enum gpc_exit gpc_target_open_file(struct gpc_report *report, const char *path);

/* For `oom 2`: a number that is no pid of a recording becomes options->number, that of a failure. */
void gpc_target_sort_out_number(struct gpc_options *options, const struct gpc_command *command);

/* A recording of the run of --run in which a request failed, and the program did not recover. */
struct gpc_target_failure {
	const char *path; /* of the directory's entry */
	uint64_t time_ns; /* real time */
};

/* Finds those of the directory, the first failure first; returns how many there are, stores at most `most`. */
unsigned gpc_target_find_failures(const struct gpc_directory *directory, const char *run,
	struct gpc_target_failure *ret_failures, unsigned most);

bool gpc_target_is_folder(const char *target); /* NULL is none */

#endif
