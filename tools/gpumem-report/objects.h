/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files behind the recorded modules, on this machine or brought along from another one.
 *
 *      recorded: /opt/app/train, build id 12ab34...         looked for, in this order
 *
 *      SYSROOT/opt/app/train                                /opt/app/train without --sysroot
 *      DIR/.build-id/12/ab34....debug                       for each DIR of --debug-path,
 *      DIR/opt/app/train.debug   DIR/train.debug            and SYSROOT/usr/lib/debug
 *      DIR/opt/app/train         DIR/train
 *
 * Invariants  1 A file whose build id differs from the recorded one is never used: wrong names are
 *               worse than none.  2 Only regular files are opened, and nothing is waited for.
 * Threads     One.
 * Failure     -1: no such file.
 * Limits      A module that was recorded without a build id is looked for at its own place only.
 *             Nothing is fetched over the network.
 */
#ifndef GPC_REPORT_OBJECTS_H
#define GPC_REPORT_OBJECTS_H

#include "format/recording.h"

/* Whose recordings are believed when they name files. */
enum gpc_symbols_of {
	GPC_SYMBOLS_OF_OURS, /* this user's, and root's */
	GPC_SYMBOLS_OF_ALL,  /* --symbols */
	GPC_SYMBOLS_OF_NONE, /* --no-symbols */
};

/* Where to look; NULL: not said. */
struct gpc_places {
	const char *sysroot;
	const char *debug_path; /* DIR[:DIR]... */
	enum gpc_symbols_of symbols_of;
};

struct gpc_object_file {
	char path[1024];
	int fd;       /* open for reading, the caller's; -1: none */
	bool differs; /* there was one, of another build */
};

/* The module itself, or a file of its debug information where that is all there is. */
struct gpc_object_file gpc_object_find(
	const struct gpc_places *places, const struct gpc_module_view *view);

/*
 * Its debug information, where that lies in a file of its own: in a DIR, in /usr/lib/debug, or beside the
 * module where its debug link (NULL: it has none) says.
 */
struct gpc_object_file gpc_object_find_debug(
	const struct gpc_places *places, const struct gpc_module_view *view, const char *link);

#endif
