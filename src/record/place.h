/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the recording's file goes: makes it, gives it all its pages, locks it, maps it.
 *
 *   pattern of the user  ->  /dev/shm/gpucache-UID/  ->  $XDG_RUNTIME_DIR/gpucache/
 *                        ->  $TMPDIR/gpucache-UID/, where TMPDIR is /tmp if not set
 *
 * The first place that works is taken.  Where somebody else took all names of ours, it is a random
 * one (base/own_folder.h).  Directories of ours must belong to this user and be closed
 * to all others, judged by the open descriptor; a user's own pattern may lead anywhere, but the
 * file is new.
 *
 * Invariants  1 An existing file is never opened.  Where the name that the user gave is a device, a
 *               pipe or a socket, nothing is made beside it either.
 *             2 Space is allocated, not promised: a sparse file on a full tmpfs would kill the
 *               program.
 *             3 RLIMIT_FSIZE is kept: passing it would raise SIGXFSZ.
 *             4 A place that fails leaves no file behind.
 *             5 A file that has its name is filled: see Limits.
 * Failure     GPC_IO with errno of the last place tried.
 * Limits      On a small file system at most 1/8 of what is free is taken, or the least size.  Where
 *             there are no unnamed files (O_TMPFILE, /proc), the name comes first: a process killed
 *             in the millisecond until it is filled leaves a file that no reader takes for whole.
 */
#ifndef GPC_RECORD_PLACE_H
#define GPC_RECORD_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "record/identity.h"

#define GPC_PLACE_MAX_PATH 1024u

struct gpc_place {
	int fd;
	void *base;
	size_t size; /* what was given: between the least and the wanted size */
	struct gpc_io_file file;
	char path[GPC_PLACE_MAX_PATH];
	/* Set also where another place was used instead. */
	int pattern_errno;
	char pattern_error;
	bool is_name_taken; /* the pattern's: `path` has a number behind it */
	int default_errno;  /* why our first place could not be used, where it was wanted */
};

struct gpc_place_wish {
	size_t size;  /* wanted */
	size_t least; /* will do; both are multiples of the page */
	/*
	 * Writes what a reader needs into the empty file, before it has a name; again for the next
	 * file where this one cannot get one.
	 */
	void (*fill)(void *arg, void *base, size_t size);
	void *arg;
};

GPC_MUST_CHECK enum gpc_status gpc_place_open(struct gpc_place *place, const char *pattern,
	const struct gpc_identity *identity, const struct gpc_place_wish *wish);

#endif
