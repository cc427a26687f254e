/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread's id comes from gettid, queried once per thread.  The kernel wipes one page in a child that has its own
 * copy of memory (fork, raw clone), so the page tells that child from the process that loaded the library.  A child
 * that shares memory (vfork, CLONE_VM) differs by its pid alone.
 */
#include "base/thread.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct gpc_thread gpc_thread;

uint32_t gpc_process_none;
_Atomic(uint32_t *) gpc_process_page = &gpc_process_none;

uint32_t gpc_thread_ask_id(void)
{
	gpc_thread.id = (uint32_t)syscall(SYS_gettid);
	return gpc_thread.id;
}

bool gpc_thread_enter_first(void)
{
	gpc_thread.stay = gpc_stay_find(gpc_thread_id());
	return gpc_thread_enter();
}

bool gpc_process_adopt(void)
{
	uint32_t *page = atomic_load(&gpc_process_page);

	if (page == &gpc_process_none) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return false;
		if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
			munmap(page, 4096);
			return false;
		}
	}
	*page = (uint32_t)getpid();
	atomic_store(&gpc_process_page, page);
	/* In a forked child, both are its parent's. */
	gpc_thread.id = 0;
	if (gpc_thread.stay)
		gpc_stay_end(gpc_thread.stay);
	gpc_thread.stay = gpc_stay_find(gpc_thread_id());
	return true;
}

bool gpc_process_is_exactly_ours(void)
{
	return *atomic_load(&gpc_process_page) == (uint32_t)getpid();
}
