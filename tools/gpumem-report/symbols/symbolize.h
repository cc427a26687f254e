/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves return addresses to functions, files and lines, offline.
 *
 * A file of symbols next to the recording (pack_file.h) is asked first.  Otherwise libdw reads the module's file, whose path
 * and build id were recorded (elf_files.h): its debug information, or its symbol table.
 *
 *      one address:   alloc     vec.h:12    inlined
 *                     reserve   vec.h:40    inlined, where it calls alloc
 *                     load      main.c:7    the compiled function, where it calls reserve
 *
 * Invariants  1 Each file is opened at most once.  2 Every address but 0 has at least one symbol; the last is of the
 *               compiled function, those before it are inlined into it.
 * Threads     One.
 * Failure     Fields that cannot be found are NULL or 0.
 * Limits      Those of elf_files.h.
 */
#ifndef GPC_REPORT_SYMBOLIZE_H
#define GPC_REPORT_SYMBOLIZE_H

#include "tools/gpumem-report/symbols/elf_files.h"

struct gpc_symbol {
	char *function;     /* demangled; NULL: unknown */
	char *file;         /* of the source; NULL: unknown */
	uint32_t line;      /* 0: unknown */
	const char *module; /* path; NULL: in no module that was recorded */
	uint64_t offset;    /* the address less the module's bias; without a module, the address */
	uint64_t text;      /* a hash of what the frame prints; set by frames.c, like `class` */
	unsigned class;
};

/* Innermost first. */
struct gpc_symbol_list {
	struct gpc_symbol *rows;
	size_t n;       /* 0: the address was 0 */
	bool is_judged; /* frames.c has set text and class */
};

struct gpc_symbols;

struct gpc_symbols *gpc_symbols_create(
	const struct gpc_recording *recording, const struct gpc_places *places);
void gpc_symbols_destroy(struct gpc_symbols *symbols);

/* Returns the symbols of the call that returns to `address`, which `symbols` owns. */
struct gpc_symbol_list *gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address);
/* Iterates over the modules whose file was needed and not found; *i starts at 0.  Returns false at the end. */
bool gpc_symbols_next_missing(const struct gpc_symbols *symbols, size_t *i, const char **ret_path);

#endif
