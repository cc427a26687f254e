/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into gpumem-report: allocations fail once the file $STARVE_AT exists. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static int is_starved(void)
{
	const char *at = getenv("STARVE_AT");

	return at && strcmp(program_invocation_short_name, "gpumem-report") == 0 &&
	       access(at, F_OK) == 0;
}

void *malloc(size_t size)
{
	return is_starved() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_starved() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return is_starved() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
	return n && size > SIZE_MAX / n ? NULL : realloc(old, n * size);
}
