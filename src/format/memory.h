/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the tools: never NULL.  A tool that gets none says so on standard error and ends with GPC_EXIT_NO_MEMORY:
 * half a report would be taken for a whole one.
 *
 * Threads     As malloc's.
 * Failure     Does not return.
 * Limits      Not for sizes that an untrusted file decides: one such recording must not keep a tool from the others.
 */
#ifndef GPC_FORMAT_MEMORY_H
#define GPC_FORMAT_MEMORY_H

#include <stddef.h>

#define GPC_EXIT_NO_MEMORY 5 /* the tools' status for errors of input and output, too */

/* `n` elements of `size` zero bytes; n may be 0.  free() it. */
void *gpc_new(size_t n, size_t size);

/* Resizes the array to `n` elements; new ones are uninitialised. */
void *gpc_resize(void *array, size_t n, size_t size);

char *gpc_copy(const char *text);

/* The text that printf would print, to be freed. */
char *gpc_print(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

_Noreturn void gpc_no_memory(void);

/* Returns `memory`, which another function allocated; NULL ends the tool. */
void *gpc_checked(void *memory);

#endif
