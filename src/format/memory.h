/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation for the tools, which never returns NULL.  If there is no memory, the tool prints a line to standard error
 * and exits with GPC_EXIT_NO_MEMORY: a reader would take half a report for a whole one.
 *
 * Threads     As malloc's.
 * Failure     Does not return.
 * Limits      Not for sizes that an untrusted file decides: one such file must not end a tool that reads several.
 */
#ifndef GPC_FORMAT_MEMORY_H
#define GPC_FORMAT_MEMORY_H

#include <stddef.h>

#define GPC_EXIT_NO_MEMORY 5 /* the tools' status for errors of input and output, too */

/* Allocates `n` zeroed elements of `size` bytes, for free(); n may be 0. */
void *gpc_new(size_t n, size_t size);

/* Resizes the array to `n` elements of `size` bytes; new elements are uninitialised. */
void *gpc_resize(void *array, size_t n, size_t size);

char *gpc_copy(const char *text);

/* The text that printf would print, in new memory, for free(). */
char *gpc_print(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

_Noreturn void gpc_no_memory(void);

/* Returns `memory`, which another function allocated; NULL ends the tool. */
void *gpc_checked(void *memory);

#endif
