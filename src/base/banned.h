/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poisons the functions that code inside the host process must not call.
 *
 * The Makefile includes this header first in every file that is linked into libgpucache.so.  malloc
 * may be the host's own, and the calling thread may hold its lock.  stdio and the locale belong to the host, and
 * the library must neither end the process nor put it to sleep.  A new descriptor must be above 2.  base/metamem.h,
 * base/text.h, base/log.h and base/io.h replace these functions.
 */
#ifndef GPC_BASE_BANNED_H
#define GPC_BASE_BANNED_H

/* The headers that declare these functions come first: behind the pragmas a declaration would be an error. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#pragma GCC poison malloc calloc realloc free strdup strndup asprintf
#pragma GCC poison printf fprintf sprintf vsprintf snprintf vsnprintf puts fputs fopen fdopen
#pragma GCC poison strcpy strcat strtok setlocale localtime strftime
#pragma GCC poison exit _Exit quick_exit sleep usleep nanosleep system popen pthread_create \
	sigaction signal
#pragma GCC poison openat creat pipe pipe2 memfd_create shm_open dup dup2 dup3 opendir

/* Members of structures have this name, too, so only calls of the function are errors. */
int open(const char *path, int flags, ...) __attribute__((error("use gpc_io_open")));
/* A cancellation point, which programs and sanitizers interpose, who have not seen us open it. */
int close(int fd) __attribute__((error("use gpc_io_drop")));

#endif
