/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves return addresses to functions, files and lines, offline.
 *
 * Symbols packed next to the recording (pack.h) come first.  Otherwise libdw reads the mapped file, which the recording
 * names with its build id (objects.h): its debug information, else its symbol table, else only "module + offset".
 *
 *      one address:   alloc     vec.h:12    inlined
 *                     reserve   vec.h:40    inlined, where it calls alloc
 *                     load      main.c:7    the function that was compiled, where it calls reserve
 *
 * Invariants  1 Each file is opened at most once.  2 An address has at least one symbol; the last
 *               is the compiled function, those before it are inlined into it.
 * Threads     One.
 * Failure     Fields that cannot be found are NULL or 0.
 * Limits      Those of objects.h.
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
	uint64_t text;      /* like `class`, cached here by frames.c */
	unsigned class;
};

/* Innermost first. */
struct gpc_symbol_list {
	struct gpc_symbol *rows;
	size_t n;       /* 0: no memory */
	bool is_judged; /* frames.c has set text and class */
};

struct gpc_symbols;

/* Returns NULL if out of memory. */
struct gpc_symbols *gpc_symbols_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_symbols_destroy(struct gpc_symbols *symbols);

/* The call that returns to `address`; valid as long as `symbols`.  Cached: stacks share most addresses. */
struct gpc_symbol_list *gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address);
/* Iterates over the modules whose files were missing; *i starts at 0. */
bool gpc_symbols_next_missing(const struct gpc_symbols *symbols, size_t *i, const char **ret_path);

#endif
