/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes old recordings from our default directory, which programs share: a container's /dev/shm has
 * 64 MiB, and a program that finds it full dies by SIGBUS.
 *
 * Of the recordings of dead processes it keeps the newest GPC_STALE_KEEP with a failed request, the
 * newest GPC_STALE_KEEP others, and those of the last minute, none older than GPC_STALE_AGE_NS; and, at
 * any age, the newest of a killed process, which the user may still want to read.
 *
 * Together they may use the budget: 1/8 of the file system, less if that would leave less than half of
 * it free, but at least 1/32.  Beyond it, pages that were never written are freed first, which shrinks
 * the 8 MiB of a short run to some 100 KiB.  Then recordings are removed, the least valuable first.
 * Most valuable are the newest with a failed request, the newest of a killed process, and the newest;
 * then those with a failed request; among equals, newer ones.
 *
 * Never touched: files of another user, files with other names, files in use, and incomplete files of
 * the last minute, which their owners may not have locked yet.
 *
 * Threads     Any; several processes may clean concurrently.
 * Failure     Files that cannot be removed stay.
 * Limits      Reads at most GPC_STALE_MAX_FILES names and keeps at most GPC_STALE_MAX_KEPT files.
 *             Reads a file once to find its empty pages; its mtime stays.
 */
#ifndef GPC_RECORD_STALE_H
#define GPC_RECORD_STALE_H

#include <stdint.h>

#define GPC_STALE_AGE_NS    (UINT64_C(3) * 24 * 3600 * 1000000000)
#define GPC_STALE_YOUNG_NS  (UINT64_C(60) * 1000000000)
#define GPC_STALE_KEEP      20u
#define GPC_STALE_MAX_KEPT  48u
#define GPC_STALE_MAX_FILES 4096u

/* The directory's file system. */
struct gpc_stale_space {
	uint64_t total_bytes; /* 0: unknown, no budget */
	uint64_t free_bytes;
};

/* The budget of recordings of dead processes, which use `ended_bytes` now. */
uint64_t gpc_stale_budget(const struct gpc_stale_space *space, uint64_t ended_bytes);

/* `now_ns`: real time, as mtimes are. */
void gpc_stale_clean(int dir_fd, uint64_t now_ns, const struct gpc_stale_space *space);

#endif
