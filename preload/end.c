/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways in which a process ends itself.  A failure that ends it is told, whichever it takes.  And _exit and _Exit, which
 * run no exit handlers, must not look like a kill: every child of Python's multiprocessing ends by _exit.
 *
 * Each function here tells the runtime and calls the next definition, libc's.  It may run in a signal handler, in a child
 * of vfork, and in a process that never used CUDA.  So it takes no lock and looks nothing up: find_next found the next
 * definitions when we were loaded; only an end before that looks them up.  A return from main calls libc's own exit, for
 * which the runtime has a handler.  A process that makes the system call itself, dies by a signal, or becomes another
 * program by exec, looks killed.
 *
 * Threads that call exit at once race for libc's handlers, and the fastest ends the process while ours runs in another
 * thread.  So we tell before libc's exit begins.
 */
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/real.h"
#include "runtime/process/exit.h"

#define ABORTED 134

EXPORT void _exit(int status) __attribute__((noreturn));

/* These have other names in C, because banned.h bans theirs, or because libc declares them with attributes of its own. */
EXPORT void end_at_once(int status) __asm__("_Exit") __attribute__((noreturn, alias("_exit")));
EXPORT void end_by_exit(int status) __asm__("exit") __attribute__((noreturn));
EXPORT void end_quickly(int status) __asm__("quick_exit") __attribute__((noreturn));
EXPORT void end_by_abort(void) __asm__("abort") __attribute__((noreturn));
EXPORT void end_by_assert(const char *what, const char *file, unsigned line,
	const char *function) __asm__("__assert_fail") __attribute__((noreturn));

static struct {
	void (*at_once)(int);
	void (*by_exit)(int);
	void (*quickly)(int);
	void (*by_abort)(void);
	void (*by_assert)(const char *, const char *, unsigned, const char *);
} next;

static void find(void *ret_function, const char *name)
{
	*(void **)ret_function = gpc_real_dlsym_call(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_next(void)
{
	find(&next.at_once, "_exit");
	find(&next.by_exit, "exit");
	find(&next.quickly, "quick_exit");
	find(&next.by_abort, "abort");
	find(&next.by_assert, "__assert_fail");
}

/* As ours is no static object of C++, and the loader's last handler calls this, those of the program were destroyed. */
__attribute__((destructor)) static void end_last(void)
{
	gpc_runtime_at_last();
}

static __attribute__((noreturn)) void end_by_system_call(int status)
{
	for (;;)
		(void)syscall(SYS_exit_group, status);
}

void _exit(int status)
{
	gpc_runtime_is_ending(status);
	gpc_runtime_at_exit_without_handlers();
	if (next.at_once)
		next.at_once(status);
	end_by_system_call(status);
}

void end_by_exit(int status)
{
	gpc_runtime_is_ending(status);
	if (!next.by_exit)
		find_next();
	if (next.by_exit)
		next.by_exit(status);
	end_by_system_call(status);
}

void end_quickly(int status)
{
	gpc_runtime_is_ending(status);
	if (!next.quickly)
		find_next();
	if (next.quickly)
		next.quickly(status);
	end_by_system_call(status);
}

void end_by_abort(void)
{
	gpc_runtime_is_ending(ABORTED);
	if (!next.by_abort)
		find_next();
	if (next.by_abort)
		next.by_abort();
	end_by_system_call(ABORTED);
}

void end_by_assert(const char *what, const char *file, unsigned line, const char *function)
{
	gpc_runtime_is_ending(ABORTED);
	if (!next.by_assert)
		find_next();
	if (next.by_assert)
		next.by_assert(what, file, line, function);
	end_by_abort();
}
