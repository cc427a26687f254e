/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From return addresses to functions, files and lines, after the fact.
 *
 * Symbols that were packed beside the recording (pack.h) come first.  Else the recording says which file was mapped where, and its build id.  The file (objects.h) is read
 * by libdw: debug information where there is any, else the symbol table, else nothing but
 * "module + offset", which is what anybody needs to look it up elsewhere.
 *
 *      one address:   alloc     vec.h:12    inlined
 *                     reserve   vec.h:40    inlined, where it calls alloc
 *                     load      main.c:7    the function that was compiled, where it calls reserve
 *
 * Invariants  1 Each file is opened at most once.  2 An address has at least one symbol; the last
 *               one is of the compiled function, those before it were inlined into it.
 * Threads     One.
 * Failure     What cannot be found stays NULL or 0.
 * Limits      As objects.h.
 */
#ifndef GPC_REPORT_SYMBOLIZE_H
#define GPC_REPORT_SYMBOLIZE_H

#include "tools/gpumem-report/objects.h"

struct gpc_symbol {
	char *function;     /* demangled; NULL unknown */
	char *file;         /* of the source; NULL unknown */
	uint32_t line;      /* 0 unknown */
	const char *module; /* path; NULL: in no module that was recorded */
	uint64_t offset;    /* in the module's file */
};

/* Innermost first. */
struct gpc_symbol_list {
	struct gpc_symbol *rows;
	size_t n; /* 0: no memory */
};

struct gpc_symbols;

/* NULL if there is no memory. */
struct gpc_symbols *gpc_symbols_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_symbols_destroy(struct gpc_symbols *symbols);

/* The call that returns to `address`; valid as long as `symbols` is.  Looked up once: stacks share most. */
const struct gpc_symbol_list *gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address);
/* The next module, from *i on, that starts at 0, whose file was not there when it was asked for. */
bool gpc_symbols_next_missing(const struct gpc_symbols *symbols, size_t *i, const char **ret_path);

#endif
