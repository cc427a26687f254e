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
 * Invariants  1 A file whose build id differs from the recorded one is never used: its functions have other
 *               addresses.  2 Only regular files are read, and opening never blocks.
 * Threads     One.
 * Failure     fd is -1: no such file.
 * Limits      A module without a recorded build id is searched only at its own path.  Asks no debuginfod server.
 */
#ifndef GPC_REPORT_OBJECTS_H
#define GPC_REPORT_OBJECTS_H

#include "format/recording.h"

/* The recordings whose modules may be opened, by the owner of the recording. */
enum gpc_symbols_of {
	GPC_SYMBOLS_OF_OURS, /* this user's and root's */
	GPC_SYMBOLS_OF_ALL,  /* --symbols */
	GPC_SYMBOLS_OF_NONE, /* --no-symbols */
};

/* Where to search; NULL: the option was not given. */
struct gpc_places {
	const char *sysroot;
	const char *debug_path; /* DIR[:DIR]... */
	enum gpc_symbols_of symbols_of;
};

struct gpc_object_file {
	char path[1024];
	int fd;       /* open for reading, the caller's; -1: none */
	bool differs; /* a file of another build was found; matters only if fd is -1 */
};

/* Finds the module's file, or without it, its debug file. */
struct gpc_object_file gpc_object_find(
	const struct gpc_places *places, const struct gpc_module_view *view);

/*
 * Finds the module's separate debug file: in each DIR, in /usr/lib/debug, and then under the name `link` next to the
 * module, in .debug there, and in the system's folder.  `link` is the name in the module's debug link; NULL: none.
 */
struct gpc_object_file gpc_object_find_debug(
	const struct gpc_places *places, const struct gpc_module_view *view, const char *link);

#endif
