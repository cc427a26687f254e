/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that interposes dlsym, as overlays and profilers do: answers one name, passes on the others.  Preloaded
 * before and after ours.
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
