/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From return addresses to functions, files and lines, after the fact.
 *
 * The recording says which file was mapped where, and its build id.  A file that is still there
 * and has the same build id is read by libdw: debug information where there is any, else the
 * symbol table, else nothing but "module + offset", which is what anybody needs to look it up
 * elsewhere.
 *
 * Invariants  1 A file whose build id differs from the recorded one is never used: wrong names are
 *               worse than none.  2 Each file is opened at most once.
 * Threads     One.
 * Failure     None: what cannot be found stays NULL or 0.
 * Limits      Inlined calls are not expanded.  Debug information is not fetched over the network.
 */
#ifndef GPC_REPORT_SYMBOLIZE_H
#define GPC_REPORT_SYMBOLIZE_H

#include "format/recording.h"

struct gpc_symbol {
	char *function;     /* demangled; NULL unknown.  The caller's to free. */
	char *file;         /* of the source; NULL unknown.  The caller's to free. */
	uint32_t line;      /* 0 unknown */
	const char *module; /* path; NULL: in no module that was recorded */
	uint64_t offset;    /* in the module's file */
};

struct gpc_symbols;

/* NULL where there is no memory. */
struct gpc_symbols *gpc_symbols_create(const struct gpc_recording *recording);
void gpc_symbols_destroy(struct gpc_symbols *symbols);

/* The call that returns to `address`. */
struct gpc_symbol gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address);

#endif
