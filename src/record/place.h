/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the recording's file goes: makes it, gives it all its pages, locks it, maps it.
 *
 *   pattern of the user  ->  /dev/shm/gpucache-UID/  ->  $XDG_RUNTIME_DIR/gpucache/
 *                        ->  $TMPDIR/gpucache-UID/, where TMPDIR is /tmp if not set
 *
 * The first place that works is taken.  Directories of ours must belong to this user and be closed
 * to all others, judged by the open descriptor; a user's own pattern may lead anywhere, but the
 * file is new.
 *
 * Invariants  1 An existing file is never opened.
 *             2 Space is allocated, not promised: a sparse file on a full tmpfs would kill the
 *               program.
 *             3 RLIMIT_FSIZE is kept: passing it would raise SIGXFSZ.
 *             4 A place that fails leaves no file behind.
 * Failure     GPC_IO with errno of the last place tried.
 * Limits      On a small file system at most 1/8 of what is free is taken, or the least size.
 */
#ifndef GPC_RECORD_PLACE_H
#define GPC_RECORD_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "record/identity.h"

#define GPC_PLACE_MAX_PATH 1024u

struct gpc_place {
	int fd;
	void *base;
	size_t size; /* what was given: between the least and the wanted size */
	uint64_t file_device;
	uint64_t file_inode;
	char path[GPC_PLACE_MAX_PATH];
	/* Set also where another place was used instead. */
	int pattern_errno;
	char pattern_error;
};

/* `size` is wanted, `least` will do; both are multiples of the page. */
GPC_MUST_CHECK enum gpc_status gpc_place_open(struct gpc_place *place, const char *pattern,
	const struct gpc_identity *identity, size_t size, size_t least);

#endif
