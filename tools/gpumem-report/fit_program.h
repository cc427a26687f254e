/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program to record a number of its steps, and polls the recording meanwhile.
 *
 *      folder --GPUCACHE_OUTPUT--> program --recordings--> polls: steps, peak --stderr--> a line of progress
 *                                     ^                      '-- enough steps
 *                                     '-------- SIGTERM, and 5 s later SIGKILL --'
 *
 * The first Ctrl-C is left to the program, which gets it from the terminal, too.  A second one, SIGTERM or SIGHUP ends
 * the program.
 *
 * Threads     One; signals are caught until the recording is open.
 * Failure     A message on standard error, and the matching exit code.  If the tool runs out of memory
 *             (format/memory.h), it ends the program and removes the folder.
 * Limits      Polls are at least a second apart, so a program with short steps exceeds the requested number.
 */
#ifndef GPC_REPORT_FIT_PROGRAM_H
#define GPC_REPORT_FIT_PROGRAM_H

#include <dirent.h>

#include "tools/gpumem-report/report.h"

struct fit_program {
	char folder[300];  /* where it records */
	bool is_temporary; /* chosen by us: removed with the program */
	DIR *contents;     /* of a temporary folder; else NULL */
	uint64_t start_ns; /* real time; ignores recordings that began earlier */
	int status;        /* as from waitpid; 0 if we ended it */
	bool is_stopped;   /* we ended it, after enough steps */
	bool is_interrupted;
};

/*
 * Runs `options->program` to its end, with NAME=VALUE in its environment unless `variable` is NULL.  is_quiet: its
 * output goes into a file of the folder.
 */
enum gpc_exit fit_program_run(struct fit_program *program, const struct gpc_options *options,
	const char *variable, const char *value, bool is_quiet);

/*
 * Opens the recording of the process with the highest peak; *ret_n is the number of processes that used a GPU.  A
 * temporary folder is removed before anything is printed, so that whatever ends the tool then leaves nothing.
 */
enum gpc_exit fit_program_open(
	struct fit_program *program, struct gpc_report *report, unsigned *ret_n);

#endif
