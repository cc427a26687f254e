/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which gpucache-run says what it runs, and how each run ended: lines KEY=TEXT (sweep.h, cure.h).
 *
 * Threads     One.
 * Failure     False, if the file cannot be read.
 */
#ifndef GPC_REPORT_TRIAL_H
#define GPC_REPORT_TRIAL_H

#include <stdbool.h>

/* Calls `take` with each line KEY=TEXT of the file; stops, and returns false, where it does. */
bool gpc_trial_read(
	const char *path, void *arg, bool (*take)(void *arg, const char *key, char *text));

#endif
