/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _exit and _Exit: an end that runs no handler, and is nobody's kill.  Every child of Python's
 * multiprocessing ends so.
 *
 * Ours says one word to the recording and goes on to the next one.  It may be called in a signal
 * handler, in a child of vfork, and in a process that never heard of CUDA, so it takes no lock and
 * looks nothing up: the next one was found when we were loaded.  What ends without a call that can be
 * seen, by quick_exit inside libc, says the same by a handler; by a system call of its own, or by
 * becoming another program, it says nothing and looks killed.
 */
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/real.h"
#include "runtime/process/exit.h"

EXPORT void _exit(int status) __attribute__((noreturn));

/* banned.h keeps us from calling it by its name. */
EXPORT void end_at_once(int status) __asm__("_Exit") __attribute__((noreturn, alias("_exit")));

static void (*next_exit)(int);

__attribute__((constructor)) static void find_next(void)
{
	*(void **)(void *)&next_exit = gpc_real_dlsym_call(RTLD_NEXT, "_exit");
}

void _exit(int status)
{
	gpc_runtime_at_exit_without_handlers();
	if (next_exit)
		next_exit(status);
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
