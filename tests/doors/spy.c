/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before gpucache: logs the lookups of a runtime library in the driver, with their results.
 *
 *   program, libcudart --> spy --> libgpucache.so --> libcuda.so.1
 *
 * Each answer of cuGetProcAddress is a line of the file DOORS_LOG:
 *   "name" version flags result object symbol
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*proc_fn)(const char *, void **, int, uint64_t, int *);
typedef void *(*dlsym_fn)(void *, const char *);

static proc_fn next_proc;

EXPORT void *dlsym(void *restrict handle, const char *restrict name);

/* Finds libc's dlsym by its version, then the next one after this library: gpucache's, which has no version. */
static dlsym_fn next_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	static dlsym_fn next;
	dlsym_fn libc = NULL;

	for (size_t i = 0; !next && !libc && i < sizeof versions / sizeof versions[0]; i++)
		*(void **)(void *)&libc = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	if (!next)
		*(void **)(void *)&next = libc(RTLD_NEXT, "dlsym");
	return next;
}

static const char *object_of(const void *pointer, const char **ret_symbol)
{
	Dl_info info;
	const char *slash;

	*ret_symbol = "-";
	if (!pointer || !dladdr(pointer, &info))
		return "-";
	if (info.dli_sname)
		*ret_symbol = info.dli_sname;
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static void write_down(const char *name, int version, uint64_t flags, int result, void *pointer)
{
	static FILE *file;
	const char *symbol;
	const char *object = object_of(pointer, &symbol);

	if (!file && getenv("DOORS_LOG"))
		file = fopen(getenv("DOORS_LOG"), "ae");
	if (file)
		fprintf(file, "\"%s\" %d %d %d %s %s\n", name, version, (int)flags, result, object,
			symbol);
	if (file)
		fflush(file);
}

static int spy_proc(const char *name, void **pfn, int version, uint64_t flags, int *status)
{
	int result = next_proc(name, pfn, version, flags, status);

	write_down(name, version, flags, result, *pfn);
	if (result == 0 && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) {
		*(void **)(void *)&next_proc = *pfn;
		*pfn = (void *)spy_proc;
	}
	return result;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	void *found = next_dlsym()(handle, name);

	if (!found || strcmp(name, "cuGetProcAddress_v2") != 0)
		return found;
	*(void **)(void *)&next_proc = found;
	write_down("dlsym", 0, 0, 0, found);
	return (void *)spy_proc;
}
