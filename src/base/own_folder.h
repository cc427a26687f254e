/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of this user alone in a place where everybody may make folders.
 *
 *      /dev/shm/gpucache-2001             the usual name; where somebody else made that before us:
 *      /dev/shm/gpucache-2001-5f3c91a0    a random one, which nobody can take away before; it is found again,
 *                                         because it is ours
 *
 * Whose a folder is is judged by the open descriptor: of this user, closed to all others, no link.
 *
 * Threads   Any.
 * Failure   -1 with errno; EPERM: it is not ours.
 * Limits    Of a parent with more entries than FOLDER_MAX_SEEN (own_folder.c) the rest is not looked at.
 */
#ifndef GPC_BASE_OWN_FOLDER_H
#define GPC_BASE_OWN_FOLDER_H

#include <stdint.h>

/* Opens `path`, or where `suffix` is not 0 path-SUFFIX.  The descriptor is the caller's. */
int gpc_own_folder_open(const char *path, uint32_t suffix);

/* Opens `path`, and makes it where it is missing. */
int gpc_own_folder_make(const char *path);

/* For where nothing else is left: path-SUFFIX, as it was made at another time, or a new one. */
int gpc_own_folder_make_random(const char *path, uint32_t *ret_suffix);

#endif
