/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files of recorded modules, on this machine or copied from another one.
 *
 *      recorded: /opt/app/train, build id 12ab34...         searched in this order
 *
 *      SYSROOT/opt/app/train                                /opt/app/train without --sysroot
 *      DIR/.build-id/12/ab34....debug                       for each DIR of --debug-path,
 *      DIR/opt/app/train.debug   DIR/train.debug            and SYSROOT/usr/lib/debug
 *      DIR/opt/app/train         DIR/train
 *
 * Invariants  1 A file whose build id differs from the recorded one is never used: wrong names are
 *               worse than none.  2 Only regular files are opened, without blocking.
 * Threads     One.
 * Failure     fd is -1: no such file.
 * Limits      A module without a recorded build id is searched only at its own path.  No network access.
 */
#ifndef GPC_REPORT_OBJECTS_H
#define GPC_REPORT_OBJECTS_H

#include "format/recording.h"

/* Whose recordings may name files to open. */
enum gpc_symbols_of {
	GPC_SYMBOLS_OF_OURS, /* this user's and root's */
	GPC_SYMBOLS_OF_ALL,  /* --symbols */
	GPC_SYMBOLS_OF_NONE, /* --no-symbols */
};

/* Where to search; NULL: not given. */
struct gpc_places {
	const char *sysroot;
	const char *debug_path; /* DIR[:DIR]... */
	enum gpc_symbols_of symbols_of;
};

struct gpc_object_file {
	char path[1024];
	int fd;       /* open for reading, the caller's; -1: none */
	bool differs; /* found only a file of another build */
};

/* Finds the module, or else its debug file. */
struct gpc_object_file gpc_object_find(
	const struct gpc_places *places, const struct gpc_module_view *view);

/*
 * Finds the module's separate debug file: in each DIR, in /usr/lib/debug, and then by `link`, the file name in its
 * debug link (NULL: it has none), in gdb's order of folders.
 */
struct gpc_object_file gpc_object_find_debug(
	const struct gpc_places *places, const struct gpc_module_view *view, const char *link);

#endif
