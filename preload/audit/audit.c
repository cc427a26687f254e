/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpucache-audit.so: for programs whose lookups bypass a preloaded library.
 *
 *     LD_AUDIT=libgpucache-audit.so LD_PRELOAD=libgpucache.so program
 *
 * A library opened with RTLD_DEEPBIND searches itself and its dependencies first, so it finds libcuda and libc's dlsym
 * before any preloaded library.  The loader asks an auditor about each symbol that it binds, by relocation or by dlsym.
 * If the symbol is libcuda's and the preloaded libgpucache.so has a symbol of that name, we answer with the latter:
 *
 *     deepbind plugin --> libcuda.so.1: cuMemAlloc_v2 --> here --> libgpucache.so: cuMemAlloc_v2
 *
 * Invariants  1 Lookups by libgpucache.so and by the driver get the loader's own answer.
 *             2 The loader gives an auditor a namespace and a libc of its own, before it loads the program's first
 *               library.  So we read libgpucache.so's symbol table in memory, and call none of its functions.
 * Threads     Any; the loader's lock is held.
 * Failure     If libgpucache.so's symbol table is not understood, every symbol binds as it would without us.
 * Limits      Without libgpucache.so in the process nothing changes.  The loader does not ask about an address that is
 *             only taken (`fn = cuMemAlloc`).  It asks about calls of a library linked with -z now only since glibc
 *             2.35.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define DRIVER_NAME "libcuda.so"     /* also libcuda.so.1, and the file with the driver's version */
#define OWN_NAME    "libgpucache.so" /* also libgpucache.so.0, which linked programs load */

enum role {
	ROLE_STRANGER, /* in another namespace */
	ROLE_PROGRAM,
	ROLE_OURS,
	ROLE_DRIVER,
};

/* The exported names of the preloaded library, in the loader's own memory. */
static struct {
	const char *base; /* NULL: not loaded, or not understood */
	const ElfW(Sym) * symbols;
	const char *names;
	const uint32_t *hash; /* DT_GNU_HASH */
} ours;

EXPORT unsigned int la_version(unsigned int version);
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie);
#if __ELF_NATIVE_CLASS == 64
EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *referrer,
	uintptr_t *definer, unsigned int *flags, const char *name);
#endif

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void find_symbols(const struct link_map *map)
{
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		/* On our architectures glibc has replaced these offsets by addresses. */
		const void *at = (const void *)entry->d_un.d_ptr;

		if (entry->d_tag == DT_SYMTAB)
			ours.symbols = at;
		else if (entry->d_tag == DT_STRTAB)
			ours.names = at;
		else if (entry->d_tag == DT_GNU_HASH)
			ours.hash = at;
	}
	if (ours.symbols && ours.names && ours.hash)
		ours.base = (const char *)map->l_addr;
}

/* The hash of the GNU symbol table. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/*
 * DT_GNU_HASH: number of buckets, first symbol, number of filter words, shift; the filter; for each bucket its first
 * symbol; for each symbol its hash, whose lowest bit ends the bucket.
 */
static uintptr_t find_ours(const char *name)
{
	const uint32_t *buckets = ours.hash + 4 + ours.hash[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + ours.hash[0];
	const uint32_t first = ours.hash[1];
	const uint32_t hash = hash_name(name);
	uint32_t i = ours.hash[0] ? buckets[hash % ours.hash[0]] : 0;

	for (; i >= first && i != 0; i++) {
		const ElfW(Sym) *symbol = &ours.symbols[i];

		if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
			strcmp(ours.names + symbol->st_name, name) == 0)
			return (uintptr_t)(ours.base + symbol->st_value);
		if (chain[i - first] & 1)
			break;
	}
	return 0;
}

/* All versions of this interface so far call our functions in the same way. */
unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Stores the role of the library in its cookie. */
unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	const char *name = base_name(map->l_name);

	*cookie = ROLE_PROGRAM;
	if (lmid != LM_ID_BASE) {
		*cookie = ROLE_STRANGER;
		return 0;
	}
	if (strncmp(name, OWN_NAME, strlen(OWN_NAME)) == 0) {
		*cookie = ROLE_OURS;
		if (!ours.base)
			find_symbols(map);
		return 0;
	}
	if (strncmp(name, DRIVER_NAME, strlen(DRIVER_NAME)) == 0) {
		*cookie = ROLE_DRIVER;
		return LA_FLG_BINDTO;
	}
	return LA_FLG_BINDFROM;
}

#if __ELF_NATIVE_CLASS == 64
/* For dlsym the loader calls this if either library was flagged, so both roles are checked. */
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *referrer,
	uintptr_t *definer, unsigned int *flags, const char *name)
{
	uintptr_t replacement = 0;

	(void)index;
	(void)flags;
	if (ours.base && *referrer == ROLE_PROGRAM && *definer == ROLE_DRIVER)
		replacement = find_ours(name);
	return replacement ? replacement : (uintptr_t)symbol->st_value;
}
#endif
