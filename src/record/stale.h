/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes old recordings from our own default directory.
 *
 * A file goes when nobody holds its lock and it is older than GPC_STALE_AGE_NS, or GPC_STALE_KEEP
 * files of processes that ended are newer.  Never: files of another user, files whose names are
 * not ours, files of the last minute (their owner may not have locked them yet), and the newest
 * one of a process that was killed, because somebody will want to read it.
 *
 * Threads   Any; several processes may clean at once.
 * Failure   What cannot be removed stays.
 * Limits    At most GPC_STALE_MAX_FILES names are looked at.
 */
#ifndef GPC_RECORD_STALE_H
#define GPC_RECORD_STALE_H

#include <stdint.h>

#define GPC_STALE_AGE_NS    (UINT64_C(3) * 24 * 3600 * 1000000000)
#define GPC_STALE_YOUNG_NS  (UINT64_C(60) * 1000000000)
#define GPC_STALE_KEEP      20u
#define GPC_STALE_MAX_FILES 4096u

/* `now_ns` is real time, as the files' own. */
void gpc_stale_clean(int dir_fd, uint64_t now_ns);

#endif
