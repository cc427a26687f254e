/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private folder of this user in a directory that everybody may write.
 *
 *      /dev/shm/gpucache-2001             the usual name; if another user has taken it:
 *      /dev/shm/gpucache-2001-5f3c91a0    a random suffix, which cannot be taken in advance; later processes find
 *                                         the folder because this user owns it
 *
 * Ownership is checked on the open descriptor: owned by this user, closed to all others, not a symbolic link.
 *
 * Threads   Any.
 * Failure   -1 with errno set; EPERM: the folder is not private to this user.
 * Limits    At most FOLDER_MAX_SEEN (own_folder.c) entries of the parent are searched.
 */
#ifndef GPC_BASE_OWN_FOLDER_H
#define GPC_BASE_OWN_FOLDER_H

#include <stdint.h>

/* Opens `path`, or path-SUFFIX if `suffix` is not 0.  The caller owns the descriptor. */
int gpc_own_folder_open(const char *path, uint32_t suffix);

/* Opens `path`, creating it if it is missing. */
int gpc_own_folder_make(const char *path);

/* If gpc_own_folder_make fails: opens path-SUFFIX, an existing folder of this user or a new one. */
int gpc_own_folder_make_random(const char *path, uint32_t *ret_suffix);

#endif
