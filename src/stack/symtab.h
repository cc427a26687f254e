/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names functions that no object exports: static functions, and those of an executable.  Reads the symbol table of the
 * file, only for the few stack lines that are printed when a request fails (oom/short_form.h).  gpumem-report
 * names the functions of all other stacks.
 *
 * Threads   Any; no lock of ours may be held.
 * Failure   False: no such file, a file without a symbol table (stripped), or no function at the address.
 * Limits    Tables of at most GPC_SYMTAB_MAX_BYTES; names are cut at 127 bytes.
 *           A linear search, some milliseconds per 100,000 symbols.
 */
#ifndef GPC_STACK_SYMTAB_H
#define GPC_STACK_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_SYMTAB_MAX_BYTES (64u << 20)

/* Writes the name of the function at `address` in the object file `path`, mapped at `base`; truncated to fit. */
bool gpc_symtab_find(const char *path, uint64_t base, uint64_t address, char *buf, size_t size);

#endif
