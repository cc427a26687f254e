/* SPDX-License-Identifier: Apache-2.0 */
#include "reach.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

#define DRIVER  "libcuda.so.1"
#define RUNTIME "libcudart.so.13"

enum {
	LEGACY = 1, /* flags of cuGetProcAddress */
	PER_THREAD = 2,
};

#ifdef LINKED
#define ROW(name, since) extern int name(void);
#include "rows.def"
#define ADDRESS(name) ((void *)(name))
#else
#define ADDRESS(name) NULL
#endif

struct row {
	const char *name;
	int since;
	void *linked;
};

static const struct row rows[] = {
#define ROW(row_name, version) \
	{ .name = #row_name, .since = (version), .linked = ADDRESS(row_name) },
#include "rows.def"
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static void die(const char *what)
{
	const char *why = dlerror();

	fprintf(stderr, "reach: %s: %s\n", what, why ? why : "?");
	exit(3);
}

static void *open_library(const char *name, int flags)
{
	void *library = dlopen(name, RTLD_NOW | flags);

	if (!library)
		die(name);
	return library;
}

static void print_row(const char *name, const void *pointer)
{
	Dl_info info = { 0 };
	const char *object = "-";

	if (pointer && dladdr(pointer, &info))
		object = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1
						      : info.dli_fname;
	printf("%s %s %s\n", name, pointer ? object : "nothing",
		info.dli_sname ? info.dli_sname : "-");
}

/* ---- doors that take the symbol's whole name ---- */

static void *by_address(const struct row *row)
{
	return row->linked;
}

static void *by_default(const struct row *row)
{
	(void)open_library(DRIVER, RTLD_GLOBAL);
	return dlsym(RTLD_DEFAULT, row->name);
}

static void *by_next(const struct row *row)
{
	(void)open_library(DRIVER, RTLD_GLOBAL);
	return dlsym(RTLD_NEXT, row->name);
}

static void *by_handle(const struct row *row)
{
	return dlsym(open_library(DRIVER, RTLD_LOCAL), row->name);
}

/* By dlvsym; the driver's symbols have no version, so any version matches. */
static void *by_version(const struct row *row)
{
	return dlvsym(open_library(DRIVER, RTLD_LOCAL), row->name, "any");
}

#ifdef LINKED
/* Contains a call of each row, so that each has a slot in the GOT.  Never runs. */
__attribute__((used, noinline)) static void call_all(void)
{
#define ROW(name, since) (void)name();
#include "rows.def"
}

static uintptr_t dynamic(ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag)
			return entry->d_un.d_val;
	return 0;
}

/* The target of a direct call: the address that the loader stored in this object's GOT. */
static void *by_call(const struct row *row)
{
	const ElfW(Rela) *slots = (const void *)dynamic(DT_JMPREL);
	const ElfW(Sym) *symbols = (const void *)dynamic(DT_SYMTAB);
	const char *names = (const void *)dynamic(DT_STRTAB);
	Dl_info info;

	if (!dladdr(rows, &info))
		return NULL;
	for (size_t i = 0; i < dynamic(DT_PLTRELSZ) / sizeof *slots; i++) {
		const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(slots[i].r_info)];

		if (strcmp(names + symbol->st_name, row->name) == 0)
			return *(void **)(void *)((char *)info.dli_fbase + slots[i].r_offset);
	}
	return NULL;
}
#else
static void *by_call(const struct row *row)
{
	(void)row;
	return NULL;
}
#endif

/* ---- doors that take a base name, version and flags ---- */

static void *ask_v2(const struct row *row, uint64_t flags)
{
	int (*get)(const char *, void **, int, uint64_t, int *);
	void *pointer = NULL;
	char base[MAX_NAME];
	int status;

	(void)base_of(row->name, base);
	*(void **)(void *)&get = dlsym(open_library(DRIVER, RTLD_LOCAL), "cuGetProcAddress_v2");
	return get && get(base, &pointer, row->since, flags, &status) == 0 ? pointer : NULL;
}

static void *by_v2(const struct row *row)
{
	char base[MAX_NAME];

	return ask_v2(row, base_of(row->name, base) ? PER_THREAD : 0);
}

static void *by_v2_legacy(const struct row *row)
{
	return ask_v2(row, LEGACY);
}

static void *by_v2_per_thread(const struct row *row)
{
	return ask_v2(row, PER_THREAD);
}

static void *by_v1(const struct row *row)
{
	int (*get)(const char *, void **, int, uint64_t);
	void *pointer = NULL;
	char base[MAX_NAME];
	bool is_per_thread = base_of(row->name, base);

	*(void **)(void *)&get = dlsym(open_library(DRIVER, RTLD_LOCAL), "cuGetProcAddress");
	return get && get(base, &pointer, row->since, is_per_thread ? PER_THREAD : 0) == 0 ? pointer
											   : NULL;
}

static void *by_entry_point(const struct row *row)
{
	int (*get)(const char *, void **, unsigned long long, int *);
	void *pointer = NULL;
	char base[MAX_NAME];
	bool is_per_thread = base_of(row->name, base);
	int status;

	*(void **)(void *)&get =
		dlsym(open_library(RUNTIME, RTLD_LOCAL), "cudaGetDriverEntryPoint");
	if (!get)
		die("cudaGetDriverEntryPoint");
	return get(base, &pointer, is_per_thread ? PER_THREAD : 0, &status) == 0 ? pointer : NULL;
}

static void *by_entry_point_version(const struct row *row)
{
	int (*get)(const char *, void **, unsigned, unsigned long long, int *);
	void *pointer = NULL;
	char base[MAX_NAME];
	bool is_per_thread = base_of(row->name, base);
	int status;

	*(void **)(void *)&get =
		dlsym(open_library(RUNTIME, RTLD_LOCAL), "cudaGetDriverEntryPointByVersion");
	if (!get)
		die("cudaGetDriverEntryPointByVersion");
	return get(base, &pointer, (unsigned)row->since, is_per_thread ? PER_THREAD : 0, &status) ==
			       0
		       ? pointer
		       : NULL;
}

static const struct {
	const char *name;
	void *(*find)(const struct row *row);
} doors[] = {
	{ "call", by_call },
	{ "address", by_address },
	{ "default", by_default },
	{ "next", by_next },
	{ "handle", by_handle },
	{ "dlvsym", by_version },
	{ "v1", by_v1 },
	{ "v2", by_v2 },
	{ "v2-legacy", by_v2_legacy },
	{ "v2-thread", by_v2_per_thread },
	{ "entry", by_entry_point },
	{ "entry-version", by_entry_point_version },
};

int reach(const char *door)
{
	for (size_t d = 0; d < sizeof doors / sizeof doors[0]; d++) {
		if (strcmp(doors[d].name, door) != 0)
			continue;
		for (size_t i = 0; i < N_ROWS; i++)
			print_row(rows[i].name, doors[d].find(&rows[i]));
		return 0;
	}
	fprintf(stderr, "reach: no door \"%s\"\n", door);
	return 2;
}

#ifndef PLUGIN
/* reach DOOR [PLUGIN local|deepbind]: looks up by itself, or from a plugin opened in that mode. */
int main(int argc, char **argv)
{
	int (*run)(const char *door) = reach;

	if (argc == 4) {
		int deep = strcmp(argv[3], "deepbind") == 0 ? RTLD_DEEPBIND : 0;

		*(void **)(void *)&run = dlsym(open_library(argv[2], RTLD_LOCAL | deep), "reach");
	}
	return argc < 2 ? 2 : run(argv[1]);
}
#endif
