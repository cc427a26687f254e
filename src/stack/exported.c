/* SPDX-License-Identifier: Apache-2.0 */
/* dl_iterate_phdr lists the objects; the dynamic section of each leads to its symbols, which are mapped. */
#include "stack/exported.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

struct search {
	struct gpc_exported *rows;
	uint32_t n;
	const struct gpc_exported_sink *sink;
};

struct symbols {
	const ElfW(Sym) * table;
	const char *names;
	uint64_t n;
	/* Those before the first that DT_GNU_HASH has: among them all imports. */
	uint64_t n_outside;
	uint64_t names_size;
};

/* The first row at or above the address. */
static uint32_t first_from(const struct search *search, uint64_t address)
{
	uint32_t low = 0, high = search->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (search->rows[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The chains of DT_GNU_HASH are ordered by bucket, and the last entry of each is odd: the last chain ends the table. */
static uint64_t count_by_gnu_hash(const uint32_t *hash)
{
	uint32_t n_buckets = hash[0], first = hash[1], bloom_words = hash[2];
	const uint32_t *buckets = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof *hash);
	const uint32_t *chains = buckets + n_buckets;
	uint32_t last = 0;

	for (uint32_t i = 0; i < n_buckets; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < first)
		return first;
	while (!(chains[last - first] & 1))
		last++;
	return (uint64_t)last + 1;
}

/* The loader has added the base to addresses in the dynamic section of what it loads, but not for the vDSO. */
static const void *at(const struct dl_phdr_info *info, ElfW(Addr) address)
{
	return (const void *)(address < info->dlpi_addr ? address + info->dlpi_addr : address);
}

static bool find_symbols(const struct dl_phdr_info *info, struct symbols *ret_symbols)
{
	const ElfW(Dyn) *dynamic = NULL;
	struct symbols symbols = { .n = 0 };
	const uint32_t *gnu_hash = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			symbols.table = at(info, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_STRTAB)
			symbols.names = at(info, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_STRSZ)
			symbols.names_size = dynamic->d_un.d_val;
		else if (dynamic->d_tag == DT_GNU_HASH)
			gnu_hash = at(info, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_HASH && !symbols.n)
			symbols.n = ((const uint32_t *)at(info, dynamic->d_un.d_ptr))[1];
	}
	if (gnu_hash)
		symbols.n = count_by_gnu_hash(gnu_hash);
	symbols.n_outside = gnu_hash ? gnu_hash[1] : symbols.n;
	*ret_symbols = symbols;
	return symbols.table && symbols.names && symbols.n > 0;
}

static bool is_one_of(const char *name, const char *const names[])
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

bool gpc_exported_is_imported(const struct dl_phdr_info *info, const char *const names[])
{
	struct symbols symbols;

	if (!find_symbols(info, &symbols))
		return false;
	for (uint64_t i = 0; i < symbols.n_outside; i++) {
		const ElfW(Sym) *symbol = &symbols.table[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < symbols.names_size &&
			is_one_of(symbols.names + symbol->st_name, names))
			return true;
	}
	return false;
}

/* Of several functions at an address, as aliases are, the one that starts last, and of these the first. */
static void name_rows(struct search *search, uint32_t first, uint32_t end, uint64_t base,
	const struct symbols *symbols)
{
	struct gpc_exported *rows = search->rows;
	uint64_t lowest = rows[first].address, highest = rows[end - 1].address;

	for (uint64_t i = 0; i < symbols->n; i++) {
		const ElfW(Sym) *symbol = &symbols->table[i];
		unsigned type = ELF64_ST_TYPE(symbol->st_info);
		uint64_t start = base + symbol->st_value;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
			start > highest || start + symbol->st_size <= lowest ||
			symbol->st_name >= symbols->names_size)
			continue;
		for (uint32_t row = first_from(search, start);
			row < end && rows[row].address - start < symbol->st_size; row++)
			if (!rows[row].name || start > rows[row].start) {
				rows[row].name = symbols->names + symbol->st_name;
				rows[row].start = start;
			}
	}
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	const struct gpc_exported_sink *sink = search->sink;
	struct symbols symbols;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;
		uint32_t first = first_from(search, start);
		uint32_t end = first_from(search, start + segment->p_memsz);

		if (segment->p_type != PT_LOAD || first == end)
			continue;
		if (sink->wants(sink->self, info->dlpi_name) && find_symbols(info, &symbols))
			name_rows(search, first, end, info->dlpi_addr, &symbols);
		for (uint32_t row = first; row < end; row++)
			sink->found(
				sink->self, &search->rows[row], info->dlpi_name, info->dlpi_addr);
	}
	return 0;
}

void gpc_exported_find(struct gpc_exported *rows, uint32_t n, const struct gpc_exported_sink *sink)
{
	struct search search = { rows, n, sink };

	if (n > 0)
		dl_iterate_phdr(look_at, &search);
}
