/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes old recordings from our own default directory, which is the memory of others, too: a
 * container's /dev/shm has 64 MiB, and a program that finds it full dies by SIGBUS.
 *
 * Of the recordings that nobody writes any more these are kept: the newest GPC_STALE_KEEP in which a
 * request failed, the newest GPC_STALE_KEEP others, and those of the last minute, none older than
 * GPC_STALE_AGE_NS; and, whatever its age, the newest one of a process that was killed, because
 * somebody will want to read it.
 *
 * Together they take no more than the budget: 1/8 of the file system, less where that would leave not
 * half of it free, and 1/32 in any case.  Where they take more, pages that were never written are
 * given back first, which leaves of a short run's 8 MiB some 100 KiB.  Then recordings go, the least
 * valuable first: the newest with a failed request, the newest of a killed process and the newest
 * stay before all others, those with a failed request before those without, newer ones before older.
 *
 * Never touched: files of another user, files whose names are not ours, files that somebody writes,
 * and files of the last minute that hold nothing yet: their owner may not have locked them.
 *
 * Threads     Any; several processes may clean at once.
 * Failure     What cannot be removed stays.
 * Limits      At most GPC_STALE_MAX_FILES names are looked at, and GPC_STALE_MAX_KEPT files kept.  A
 *             file is read once to find its empty pages; its time of change stays.
 */
#ifndef GPC_RECORD_STALE_H
#define GPC_RECORD_STALE_H

#include <stdint.h>

#define GPC_STALE_AGE_NS    (UINT64_C(3) * 24 * 3600 * 1000000000)
#define GPC_STALE_YOUNG_NS  (UINT64_C(60) * 1000000000)
#define GPC_STALE_KEEP      20u
#define GPC_STALE_MAX_KEPT  48u
#define GPC_STALE_MAX_FILES 4096u

/* Of the directory's file system. */
struct gpc_stale_space {
	uint64_t total_bytes; /* 0: not known, no budget */
	uint64_t free_bytes;
};

/* What ended recordings may take, of which there are `ended_bytes` now. */
uint64_t gpc_stale_budget(const struct gpc_stale_space *space, uint64_t ended_bytes);

/* `now_ns` is real time, as the files' own. */
void gpc_stale_clean(int dir_fd, uint64_t now_ns, const struct gpc_stale_space *space);

#endif
