/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are sorted by start.  A lookup begins at the last row that starts at or before the address, and goes back while
 * an earlier row may cover the address: each row has the farthest end of itself and of all rows before it.
 */
#include "tools/gpumem-report/symbols/functions.h"

#include <stdlib.h>

#include "base/saturating.h"
#include "format/array.h"
#include "format/memory.h"

struct gpc_function {
	uint64_t start;
	uint64_t end;
	uint64_t farthest; /* the highest `end` of this row and all rows before it */
	const char *name;
	unsigned rank; /* of rows with the same start, the highest wins: rank_of() */
};

static unsigned rank_of(const GElf_Sym *symbol, const char *name)
{
	static const unsigned ranks[] = { [STB_LOCAL] = 0, [STB_GLOBAL] = 2, [STB_WEAK] = 1 };
	unsigned binding = GELF_ST_BIND(symbol->st_info);
	unsigned rank = binding < sizeof ranks / sizeof ranks[0] ? ranks[binding] : 1;

	return 2 * rank + (name[0] != '_');
}

static bool is_function(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	return name && *name && symbol->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

static int compare(const void *a, const void *b)
{
	const struct gpc_function *left = a;
	const struct gpc_function *right = b;

	return GPC_ORDER(left->start, right->start) ?: GPC_ORDER(left->rank, right->rank);
}

/* Sets `farthest`, and the end of symbols without a size (assembly): the start of the next symbol. */
static void set_ends(struct gpc_functions *functions)
{
	uint64_t farthest = 0;
	uint64_t next = 0; /* the next higher start; 0: there is none */

	for (size_t i = functions->n; i-- > 0;) {
		struct gpc_function *row = &functions->rows[i];

		if (i + 1 < functions->n && functions->rows[i + 1].start != row->start)
			next = functions->rows[i + 1].start;
		if (row->end == row->start && next)
			row->end = next;
	}
	for (size_t i = 0; i < functions->n; i++) {
		farthest = gpc_larger(farthest, functions->rows[i].end);
		functions->rows[i].farthest = farthest;
	}
}

void gpc_functions_read(struct gpc_functions *functions, Dwfl_Module *module)
{
	int n_symbols = dwfl_module_getsymtab(module);

	*functions = (struct gpc_functions){ 0 };
	if (n_symbols <= 0)
		return;
	functions->rows = gpc_new((size_t)n_symbols, sizeof *functions->rows);
	for (int i = 0; i < n_symbols; i++) {
		GElf_Addr start;
		GElf_Sym symbol;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &start, NULL, NULL, NULL);

		if (is_function(&symbol, name))
			functions->rows[functions->n++] = (struct gpc_function){ .start = start,
				.end = start + symbol.st_size,
				.name = name,
				.rank = rank_of(&symbol, name) };
	}
	if (functions->n)
		qsort(functions->rows, functions->n, sizeof *functions->rows, compare);
	set_ends(functions);
}

void gpc_functions_fini(struct gpc_functions *functions)
{
	free(functions->rows);
	*functions = (struct gpc_functions){ 0 };
}

const char *gpc_functions_find(const struct gpc_functions *functions, uint64_t address)
{
	size_t n = GPC_ARRAY_COUNT(functions->n, i, functions->rows[i].start <= address);

	while (n > 0 && functions->rows[n - 1].farthest > address) {
		const struct gpc_function *row = &functions->rows[--n];

		if (row->end > address)
			return row->name;
	}
	return NULL;
}
