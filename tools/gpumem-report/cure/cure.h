/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would make a run go on that ran out of memory: settings, tried by really running the program with each, and
 * changes of the program, with the bytes that each saves by the recording.  Nothing is executed here: gpucache-run
 * --cure runs what --next names.
 *
 *	FOLDER/1          the run as it was: trial, said, and its recordings
 *	FOLDER/N/trial    setting=KEY      of settings.def
 *	                  command=WORDS    what was run, for a shell, with the settings that the user had, too
 *	                  refused=WORDS    why the library did not apply the setting
 *	                  ended=0          as sweep.h
 *
 * Threads     One.
 * Failure     None: a trial that cannot be read was not made.
 */
#ifndef GPC_REPORT_CURE_H
#define GPC_REPORT_CURE_H

#include "tools/gpumem-report/why/failure.h"

/* A setting with which the program ran is run again: where addresses decide, that it ran once says little. */
#define GPC_CURE_RUNS 2

/* Most rows of settings.def. */
#define GPC_CURE_MAX_SETTINGS 24

enum gpc_cure_state {
	GPC_CURE_OPEN,     /* not tried */
	GPC_CURE_HOPELESS, /* not tried: more is live than any placement has room for */
	GPC_CURE_RAN,      /* to its end, or behind the steps that it had made, each time */
	GPC_CURE_EDGE,     /* not each time */
	GPC_CURE_FAILED,   /* out of memory again */
	GPC_CURE_LATE,
	GPC_CURE_OTHER, /* it ended for another reason */
};

struct gpc_cure_setting {
	const char *key;
	const char *words;
	char assignments[160];
	enum gpc_cure_state state;
	bool is_replayed; /* a replay served the request */
	unsigned n_ran;
	char *command; /* of the trial; NULL: none */
	char *refused; /* NULL: the setting was applied */
	/* of a trial that ran; GPUCACHE_UNKNOWN: unknown */
	uint64_t n_driver_calls;
	uint64_t headroom_bytes; /* by which the GPU could be smaller, by a replay */
};

struct gpc_cure {
	const struct gpc_report *report;
	struct gpc_failure failure;
	struct gpc_cure_setting settings[GPC_CURE_MAX_SETTINGS];
	size_t n;
	uint64_t n_steps; /* that the run had made */
	uint64_t n_driver_calls;
	bool is_hopeless;
};

/* Makes the list of settings for the failure, and reads the trials of --trials. */
void gpc_cure_find(
	struct gpc_cure *cure, const struct gpc_report *report, const struct gpucache_oom *oom);

/* The first setting with which it ran each time; NULL: none. */
const struct gpc_cure_setting *gpc_cure_first(const struct gpc_cure *cure);

/* Adds the section CHANGES: what the program could do, with the bytes that it saves. */
void gpc_cure_show_changes(const struct gpc_cure *cure, struct gpc_document *doc);

#endif
