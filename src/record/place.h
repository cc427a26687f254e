/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the recording's file, allocates all its pages, locks and maps it, in the first of these places that works:
 *
 *   pattern of the user  ->  /dev/shm/gpucache-UID/  ->  $XDG_RUNTIME_DIR/gpucache/
 *                        ->  $TMPDIR/gpucache-UID/, where TMPDIR is /tmp if not set
 *
 * If other users have taken the names of these directories, a random name is used (base/own_folder.h).  A directory of
 * ours must belong to this user and be closed to all others, which is checked on the open descriptor.  The user's
 * pattern may lead anywhere.
 *
 * Invariants  1 An existing file is never opened.  If the pattern names a device, a pipe or a socket, or a link to
 *               one, no file is created next to it; in /dev none is created, except in /dev/shm.
 *             2 All pages are allocated: if a tmpfs is full, a store into an unallocated page raises SIGBUS.
 *             3 The size is at most RLIMIT_FSIZE: a larger one would raise SIGXFSZ.
 *             4 A failed attempt leaves no file.
 *             5 A file is filled before it gets its name: see Limits.
 * Failure     GPC_IO with the errno of the last place tried.
 * Limits      Takes at most 1/8 of the free space, but at least the least size.  A file system without O_TMPFILE, or a
 *             system without /proc, requires that the file is named first.  A process killed in the millisecond before
 *             the file is filled then leaves a file that readers recognize as incomplete.
 */
#ifndef GPC_RECORD_PLACE_H
#define GPC_RECORD_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/io.h"
#include "base/status.h"
#include "record/identity.h"

#define GPC_PLACE_MAX_PATH 1024u

struct gpc_place {
	int fd;
	void *base;
	size_t size; /* between the least and the wanted size */
	struct gpc_io_file file;
	char path[GPC_PLACE_MAX_PATH];
	/* For a warning to the user, also if a later place worked. */
	int pattern_errno; /* why the pattern's place could not be used; 0: it was used, or there is no pattern */
	char pattern_error; /* the letter of the first unknown %x in the pattern; 0: none */
	bool is_name_taken; /* the pattern's first name existed, so `path` has another one */
	int default_errno;  /* why /dev/shm could not be used; 0: it was used, or not tried */
};

struct gpc_place_wish {
	/* Bytes wanted, and the fewest that suffice; both multiples of GPUCACHE_PAGE. */
	size_t size;
	size_t least;
	/* Fills the mapped file before it is named.  If naming fails, fill is called again for the next file. */
	void (*fill)(void *arg, void *base, size_t size);
	void *arg;
};

GPC_MUST_CHECK enum gpc_status gpc_place_open(struct gpc_place *place, const char *pattern,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish);

#endif
