/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the host has left: /proc/meminfo, and every control group that limits this process (version 1 or 2).
 *
 * The smallest answer counts.  A group's page cache that was not used lately (inactive_file) counts as free, because the
 * kernel reclaims it before it kills.  A group that is mounted elsewhere than below /sys/fs/cgroup is not seen.
 *
 * Threads   Any.
 * Failure   What cannot be read sets no limit; if nothing can, both numbers are 0.
 * Limits    Needs 10 KiB of stack.
 */
#ifndef GPC_BASE_HOST_MEMORY_H
#define GPC_BASE_HOST_MEMORY_H

#include <stdint.h>

struct gpc_host_memory {
	uint64_t free_bytes; /* available without swapping */
	uint64_t
		room_bytes; /* of these, what may be taken so that 1/8 of the host, and of each group, stays free */
};

/* `root` is put before each path: "", or a test's folder. */
struct gpc_host_memory gpc_host_memory_read(const char *root);

#endif
