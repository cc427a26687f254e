/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "names.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	NOT_FOUND = 500,
	PER_THREAD = 2, /* of the flags of cuGetProcAddress */
	DRIVER_VERSION = 13000,
	NEWER_VERSION = 14000,
	THUNKS_BYTES = 1 << 20,
};

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuGetExportTable(const void **table, const void *id);
EXPORT int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(
	const char *symbol, void **pfn, int version, uint64_t flags, int *status);

/* Stands for functions in no row: other variants, and names that we do not intercept. */
static int other(void)
{
	return NOT_SUPPORTED;
}

static int newer(void)
{
	return NOT_SUPPORTED - 1;
}

static bool is_odd(const char *how)
{
	const char *value = getenv("DOORS_DRIVER");

	return value && strcmp(value, how) == 0;
}

/* Finds the newest variant of the name in the requested version. */
static void *find(const char *name, int version, uint64_t flags)
{
	const struct entry *best = NULL;
	bool is_best_per_thread = false;

#define RENAMED(old, since, row)                           \
	if (version >= (since) && strcmp(name, #old) == 0) \
		name = #row;
#include "preload/renamed.def"

	for (size_t i = 0; i < n_entries; i++) {
		char base[MAX_NAME];
		bool is_per_thread = base_of(entries[i].name, base);

		if (strcmp(base, name) != 0 || entries[i].since > version ||
			(is_per_thread && !(flags & PER_THREAD)))
			continue;
		if (!best || is_per_thread > is_best_per_thread ||
			(is_per_thread == is_best_per_thread && entries[i].since > best->since)) {
			best = &entries[i];
			is_best_per_thread = is_per_thread;
		}
	}
	if (best)
		return best->function;
	if (strcmp(name, "cuDriverGetVersion") == 0)
		return (void *)cuDriverGetVersion;
	if (strcmp(name, "cuGetExportTable") == 0)
		return (void *)cuGetExportTable;
	return (void *)other;
}

/* Makes a thunk: instructions that jump to the function. */
static void *make_thunk(void *function)
{
#if defined(__x86_64__)
	static const unsigned char code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8, 0, 0, 0, 0, 0, 0,
		0, 0, 0xff, 0xe0 }; /* endbr64; movabs function, %rax; jmp *%rax */
	enum {
		AT = 6
	};
#elif defined(__aarch64__)
	static const unsigned char code[] = { 0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6, 0, 0, 0, 0, 0,
		0, 0, 0 }; /* ldr x16, function; br x16 */
	enum {
		AT = 8
	};
#endif
	static unsigned char *next;
	static unsigned char *end;
	unsigned char *thunk;

	if (next == end) {
		next = mmap(NULL, THUNKS_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (next == MAP_FAILED)
			abort();
		end = next + THUNKS_BYTES;
	}
	thunk = next;
	next += sizeof code;
	memcpy(thunk, code, sizeof code);
	memcpy(thunk + AT, &function, sizeof function);
	return thunk;
}

/* Returns the same thunk for the same function. */
static void *find_thunk(void *function)
{
	enum {
		MAX_THUNKS = 1024
	};
	static struct {
		void *function;
		void *thunk;
	} made[MAX_THUNKS];
	size_t i = 0;

	while (made[i].thunk && made[i].function != function)
		if (++i == MAX_THUNKS)
			abort();
	if (!made[i].thunk) {
		made[i].function = function;
		made[i].thunk = make_thunk(function);
	}
	return made[i].thunk;
}

static void *disguise(void *function)
{
	if (is_odd("trampolines"))
		return find_thunk(function);
	return is_odd("fresh") ? make_thunk(function) : function;
}

int cuInit(unsigned flags)
{
	return flags ? INVALID_VALUE : SUCCESS;
}

int cuDriverGetVersion(int *version)
{
	*version = DRIVER_VERSION;
	return SUCCESS;
}

/* The runtime library verifies the driver here, and gives up: this one is not genuine. */
int cuGetExportTable(const void **table, const void *id)
{
	(void)id;
	if (table)
		*table = NULL;
	return NOT_FOUND;
}

int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
	if (!symbol || !pfn || flags > 3)
		return INVALID_VALUE;
	if (status)
		*status = 0;
	if (strncmp(symbol, "cu", 2) != 0 || version < 1000 || strstr(symbol, "Nothing")) {
		*pfn = NULL;
		if (status)
			*status = 1; /* not found */
		return NOT_FOUND;
	}
	if (is_odd("newer") && version >= NEWER_VERSION)
		*pfn = (void *)newer;
	else
		*pfn = is_odd("null") ? NULL : disguise(find(symbol, version, flags));
	return SUCCESS;
}

int cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}
