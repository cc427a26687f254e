/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes old recordings from our default directory, whose file system other programs use, too: a container's /dev/shm
 * has 64 MiB, and a program that finds it full dies by SIGBUS.
 *
 * Of the recordings of ended processes it keeps the newest GPC_STALE_KEEP with a failed request, the newest
 * GPC_STALE_KEEP without, and those of the last minute.  It removes all that are older than GPC_STALE_AGE_NS, except
 * the newest recording of a killed process, which the user may still want to read.
 *
 * The kept recordings may use a budget: 1/8 of the file system, or less if less than half of it would stay free, but at
 * least 1/32.  If they exceed the budget, their pages that were never written are freed first, which shrinks the 8 MiB
 * of a short run to some 100 KiB.  If that is not enough, the least valuable recordings are removed.  The order of
 * value is: the newest with a failed request, the newest of a killed process, the newest of all, others with a failed
 * request, others; within each group, newer ones are worth more.
 *
 * Files of other users, files with other names and files in use are left alone.  So are incomplete files of the last
 * minute, because their owners may not have locked them yet.
 *
 * Threads     Any; several processes may clean concurrently.
 * Failure     Files that cannot be removed stay.
 * Limits      Reads at most GPC_STALE_MAX_FILES names and keeps at most GPC_STALE_MAX_KEPT files.  To find empty pages,
 *             it reads a whole file, once, and restores the file's times.
 */
#ifndef GPC_RECORD_STALE_H
#define GPC_RECORD_STALE_H

#include <stdint.h>

#define GPC_STALE_AGE_NS    (UINT64_C(3) * 24 * 3600 * 1000000000)
#define GPC_STALE_YOUNG_NS  (UINT64_C(60) * 1000000000)
#define GPC_STALE_KEEP      20u
#define GPC_STALE_MAX_KEPT  48u
#define GPC_STALE_MAX_FILES 4096u

/* The file system of the directory. */
struct gpc_stale_space {
	uint64_t total_bytes; /* 0: unknown, no budget */
	uint64_t free_bytes;
};

/* The budget in bytes; `ended_bytes` is what the recordings of ended processes use now. */
uint64_t gpc_stale_budget(const struct gpc_stale_space *space, uint64_t ended_bytes);

/* Cleans the directory.  `now_ns` is CLOCK_REALTIME, like mtimes. */
void gpc_stale_clean(int dir_fd, uint64_t now_ns, const struct gpc_stale_space *space);

#endif
