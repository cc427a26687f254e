/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that interposes dlsym for purposes of its own, as overlays and profilers do: it answers
 * one name and hands the others on.  To be preloaded before us and after us.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*next)(void *, const char *);

	if (!next)
		*(void **)(void *)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!next)
		*(void **)(void *)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (strcmp(name, "other_dlsym_answer") == 0)
		return (void *)dlsym;
	return next ? next(handle, name) : NULL;
}
