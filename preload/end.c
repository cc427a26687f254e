/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _exit and _Exit run no exit handlers, but such an end must not look like a kill.  Every child of Python's
 * multiprocessing ends by _exit.
 *
 * Our _exit marks the recording as ended and calls the next definition of _exit, libc's.  It may run in a signal
 * handler, in a child of vfork, and in a process that never used CUDA.  So it takes no lock and looks nothing up:
 * find_next found the next _exit when we were loaded.  quick_exit does not call our _exit, so a handler marks the
 * recording then.  A process that makes the system call itself, or becomes another program by exec, looks killed.
 */
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/real.h"
#include "runtime/process/exit.h"

EXPORT void _exit(int status) __attribute__((noreturn));

/* The function has another name in C, because banned.h bans this one. */
EXPORT void end_at_once(int status) __asm__("_Exit") __attribute__((noreturn, alias("_exit")));

static void (*next_exit)(int);

__attribute__((constructor)) static void find_next(void)
{
	*(void **)(void *)&next_exit = gpc_real_dlsym_call(RTLD_NEXT, "_exit");
}

/* As ours is no static object of C++, and the loader's last handler calls this, those of the program were destroyed. */
__attribute__((destructor)) static void end_last(void)
{
	gpc_runtime_at_last();
}

void _exit(int status)
{
	gpc_runtime_at_exit_without_handlers();
	if (next_exit)
		next_exit(status);
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
