/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which recording is meant by a word of the command line, or by none.
 *
 *      FILE, -       that one, standard input      PID     the newest of that process
 *      DIR, nothing  the one that ran out of memory first, else the newest that used a GPU, else the
 *                    newest: the workers of a job that hold nothing are often newer than what matters
 *
 * Where others were there, one line on standard error says how many.
 *
 * Threads     One.
 * Failure     A message on standard error, and the exit code that belongs to it.
 * Limits      As format/directory.h.
 */
#ifndef GPC_REPORT_TARGET_H
#define GPC_REPORT_TARGET_H

#include "tools/gpumem-report/report.h"

/* Opens report->recording, or lists report->directory, as the command needs it. */
enum gpc_exit gpc_target_open(struct gpc_report *report, enum gpc_needs needs);

/* Opens the file `path` as report->recording. */
enum gpc_exit gpc_target_open_file(struct gpc_report *report, const char *path);

/* `oom 2`: a number that no recording has as its pid is the number of the failure. */
void gpc_target_sort_out_number(struct gpc_options *options, const struct gpc_command *command);

bool gpc_target_is_folder(const char *target); /* NULL is none */

#endif
