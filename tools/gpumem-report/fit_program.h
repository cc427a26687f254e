/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is run to be recorded, up to a number of steps, and looked at meanwhile.
 *
 *      folder --GPUCACHE_OUTPUT--> program --recordings--> looks: steps, peak --stderr--> a line of progress
 *                                     ^                      '-- more steps than asked for
 *                                     '-------- SIGTERM, and 5 s later SIGKILL --'
 *
 * Ctrl-C is the program's, which a terminal sends it to as well; a second one ends it.
 *
 * Threads     One; the handler of SIGINT stays.
 * Failure     A message on standard error, and the exit code that belongs to it.
 * Limits      A look comes a second after the last one, or later: a program of short steps takes more than were asked for.
 */
#ifndef GPC_REPORT_FIT_PROGRAM_H
#define GPC_REPORT_FIT_PROGRAM_H

#include <sys/types.h>

#include "tools/gpumem-report/report.h"

struct fit_program {
	char folder[300];  /* where it records */
	bool is_temporary; /* nobody named it: it goes with the program */
	uint64_t start_ns; /* real time: older recordings of the folder are of others */
	int status;        /* as waitpid; 0 if it was ended here */
	bool is_stopped;   /* by us, for its steps */
	bool is_interrupted;
};

/*
 * Runs `options->program` to its end, with NAME=VALUE in its environment where `variable` is not NULL.  is_quiet: what
 * it prints goes into a file of the folder.
 */
enum gpc_exit fit_program_run(struct fit_program *program, const struct gpc_options *options,
	const char *variable, const char *value, bool is_quiet);

/* Opens the recording of the process that took most; how many took any is *ret_n. */
enum gpc_exit fit_program_open(
	const struct fit_program *program, struct gpc_report *report, unsigned *ret_n);

/* Removes a temporary folder and what is in it. */
void fit_program_end(struct fit_program *program);

#endif
