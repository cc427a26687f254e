/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions unknown to the loader: static ones, and those of an executable.  Read from the symbol table
 * of the file, only for the few stack lines that are printed when a request fails (the short form, rescue.h);
 * gpumem-report names all others.
 *
 * Threads   Any; no lock of ours may be held.
 * Failure   False: no such file, no symbol table (stripped), or no function at the address.
 * Limits    64-bit ELF; tables of at most GPC_SYMTAB_MAX_BYTES; a linear search, some milliseconds
 *           per 100,000 symbols.  Read with pread, not mapped, so a file that shrinks meanwhile is harmless.
 */
#ifndef GPC_STACK_SYMTAB_H
#define GPC_STACK_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_SYMTAB_MAX_BYTES (64u << 20)

/*
 * Finds the function at `address` in the object at `path`, mapped at `base`; NUL-terminated, truncated
 * to fit.
 */
bool gpc_symtab_find(const char *path, uint64_t base, uint64_t address, char *buf, size_t size);

#endif
