/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line.
 *
 *      gpumem-report [COMMAND] [OPTIONS] [FILE|DIR|PID]...        options and words in any order
 *
 * Threads     One.
 * Failure     A message on standard error, which suggests a valid word if one is near, and GPC_ARGUMENTS_BAD.
 * Limits      `html` and `list` take any number of recordings, `diff` two, a view of one recording several if its
 *             output is text.
 */
#ifndef GPC_REPORT_ARGUMENTS_H
#define GPC_REPORT_ARGUMENTS_H

#include "tools/gpumem-report/report.h"

/*
 * Parses argv; *ret_command is the command to run.  The caller frees ret_options->targets in every
 * case.
 */
enum gpc_arguments_answer gpc_arguments_read(int argc, char **argv, struct gpc_options *ret_options,
	const struct gpc_command **ret_command);

/* Prints the help on stdout. */
void gpc_help_print(void);

#endif
