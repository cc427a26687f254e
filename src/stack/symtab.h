/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions that the loader does not know: static ones, and those of an executable.  Read
 * from the symbol table of the file itself, for the few lines that a person reads when memory ran
 * out; gpumem-report does the rest.
 *
 * Threads   Any; no lock of ours may be held.
 * Failure   False: no such file, no symbol table (stripped), or none of its functions covers the
 *           address.
 * Limits    64-bit ELF; tables of at most GPC_SYMTAB_MAX_BYTES; a linear search, a few
 *           milliseconds at most.  Read with pread, not mapped: a file that shrinks meanwhile
 *           cannot hurt.
 */
#ifndef GPC_STACK_SYMTAB_H
#define GPC_STACK_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_SYMTAB_MAX_BYTES (64u << 20)

/*
 * The function that covers `address`, mapped at `base`, of the object at `path`; terminated,
 * cut to fit.
 */
bool gpc_symtab_find(const char *path, uint64_t base, uint64_t address, char *buf, size_t size);

#endif
