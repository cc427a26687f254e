/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous pages of the host: zeroed, and allocated by the kernel when they are first written.
 *
 * Threads     Any.
 * Failure     gpc_sim_map: NULL if the kernel has no room.
 */
#ifndef GPC_SIM_MAP_H
#define GPC_SIM_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static inline void *gpc_sim_map(uint64_t size, int protection)
{
	void *ptr =
		mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return ptr == MAP_FAILED ? NULL : ptr;
}

/* Does nothing for NULL. */
static inline void gpc_sim_unmap(void *ptr, uint64_t size)
{
	if (ptr)
		munmap(ptr, size);
}

#endif
