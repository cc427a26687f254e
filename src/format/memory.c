/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the C library's allocation functions; gpc_checked ends the tool if one returns NULL. */
#include "format/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Not through stdio, whose streams may still have to allocate a buffer. */
void gpc_no_memory(void)
{
	static const char text[] = ": out of memory\n";
	const struct iovec parts[] = {
		{ program_invocation_short_name, strlen(program_invocation_short_name) },
		{ (void *)text, sizeof text - 1 },
	};

	(void)!writev(STDERR_FILENO, parts, 2);
	exit(GPC_EXIT_NO_MEMORY);
}

void *gpc_checked(void *memory)
{
	if (!memory)
		gpc_no_memory();
	return memory;
}

void *gpc_new(size_t n, size_t size)
{
	return gpc_checked(calloc(n ? n : 1, size));
}

void *gpc_resize(void *array, size_t n, size_t size)
{
	return gpc_checked(reallocarray(array, n ? n : 1, size));
}

char *gpc_copy(const char *text)
{
	return gpc_checked(strdup(text));
}

char *gpc_print(const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		gpc_no_memory();
	return text;
}
