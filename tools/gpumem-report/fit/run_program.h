/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program to record a number of its steps, and polls the recording meanwhile.
 *
 *      folder --GPUCACHE_OUTPUT--> program --recordings--> polls: steps, peak --stderr--> a line of progress
 *                                     ^                      '-- enough steps
 *                                     '-------- SIGTERM, and 5 s later SIGKILL --'
 *
 * At the first Ctrl-C the tool does nothing: the terminal sends it to the program as well, which may end by itself.
 * After a second one, or a SIGTERM or SIGHUP to the tool, the tool ends the program.
 *
 * Threads     One; signals are caught until the recording is open.
 * Failure     A message on standard error, and the matching exit code.  If the tool itself runs out of memory
 *             (format/memory.h), it ends the program and removes the folder before it exits.
 * Limits      Polls are at least a second apart, so a program with short steps makes more of them than requested.
 */
#ifndef GPC_REPORT_FIT_PROGRAM_H
#define GPC_REPORT_FIT_PROGRAM_H

#include <dirent.h>

#include "tools/gpumem-report/report.h"

struct fit_program {
	char folder[300];  /* where it records */
	bool is_temporary; /* chosen by the tool, and removed once the recording is open */
	DIR *contents;     /* of a temporary folder; else NULL */
	uint64_t start_ns; /* real time; earlier recordings in the folder are ignored */
	int status;        /* as from waitpid; 0 if is_stopped */
	bool is_stopped;   /* we ended it, after enough steps */
	bool is_interrupted;
	unsigned n_processes; /* that used a GPU; set by fit_program_open */
};

/*
 * Runs `options->program` to its end.  With `variable`, sets that to `value` in its environment, and sends its output
 * into a file of the temporary folder, if there is one.
 */
enum gpc_exit fit_program_run(struct fit_program *program, const struct gpc_options *options,
	const char *variable, const char *value);

/*
 * Opens the recording of the process with the highest peak as report->recording, then removes a temporary folder.  If a
 * signal ends the tool while it prints the answer, no folder is left behind.
 */
enum gpc_exit fit_program_open(struct fit_program *program, struct gpc_report *report);

#endif
