/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the recording's file, allocates all its pages, locks and maps it, in the first of these places that works:
 *
 *   pattern of the user  ->  /dev/shm/gpucache-UID/  ->  $XDG_RUNTIME_DIR/gpucache/
 *                        ->  $TMPDIR/gpucache-UID/, where TMPDIR is /tmp if not set
 *
 * If other users have taken all our directories' names, a random one is used (base/own_folder.h).  Our
 * directories must belong to this user and be closed to all others, checked
 * on the open descriptor; a user's pattern may lead anywhere, but always names a new file.
 *
 * Invariants  1 An existing file is never opened.  If the user's name is a device, a pipe or a socket,
 *               no numbered file is created next to it either.
 *             2 All pages are allocated: a store into a sparse file on a full tmpfs would kill the
 *               program.
 *             3 The size respects RLIMIT_FSIZE: exceeding it would raise SIGXFSZ.
 *             4 A failed attempt leaves no file behind.
 *             5 A file is filled before it gets its name: see Limits.
 * Failure     GPC_IO with the errno of the last place tried.
 * Limits      Takes at most 1/8 of the free space of a small file system, or the least size.  Without
 *             unnamed files (O_TMPFILE, /proc) the name comes first: a process killed in the
 *             millisecond before it is filled leaves a file that readers recognize as incomplete.
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
	/* Diagnostics, set even if a later place worked. */
	int pattern_errno;  /* why the pattern failed; 0: it worked, or there is none */
	char pattern_error; /* the letter of the first unknown %x in the pattern; 0: none */
	bool is_name_taken; /* the pattern's name existed: `path` is another one */
	int default_errno;  /* why the first default place could not be used, if it was tried */
};

struct gpc_place_wish {
	size_t size;  /* wanted; a multiple of GPUCACHE_PAGE */
	size_t least; /* sufficient; likewise a multiple */
	/*
	 * Writes what a reader needs into the empty file before the file is named; called again for the
	 * next file if naming fails.
	 */
	void (*fill)(void *arg, void *base, size_t size);
	void *arg;
};

GPC_MUST_CHECK enum gpc_status gpc_place_open(struct gpc_place *place, const char *pattern,
	const struct gpucache_header *identity, const struct gpc_place_wish *wish);

#endif
