/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code inside the host process must not call does not compile.
 *
 * The Makefile includes this header, before anything else, in every file that is linked into
 * libgpucache.so.  malloc may be the host's own and may be locked; stdio and the locale are the
 * host's; the process is not ours to end or to put to sleep.  Our memory is base/metamem.h, our
 * text base/text.h, our words to a person base/log.h.
 */
#ifndef GPC_BASE_BANNED_H
#define GPC_BASE_BANNED_H

/* Their own headers first, so that the poison below hits uses and not declarations. */
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

#endif
