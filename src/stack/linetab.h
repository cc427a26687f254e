/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines of the program's own code, from the line tables of its file (DWARF 2 to 5, .debug_line), only for the few
 * stack lines that are printed when a request fails (oom/short_form.h).  gpumem-report finds the lines of all other
 * stacks, and the functions that the compiler has inlined.
 *
 *      gpc_linetab_open    reads the tables, and notes the addresses of each unit (a source file)
 *      gpc_linetab_find    runs the tables of the units that have the address
 *
 * Threads   Any; no lock of ours may be held.
 * Failure   NULL or false: no such file, none with line tables (built without -g), compressed ones, 64-bit DWARF, or no
 *           line at the address.
 * Limits    Tables of at most GPC_LINETAB_MAX_BYTES, and GPC_LINETAB_MAX_UNITS units.
 */
#ifndef GPC_STACK_LINETAB_H
#define GPC_STACK_LINETAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_LINETAB_MAX_BYTES (32u << 20)
#define GPC_LINETAB_MAX_UNITS 16384u

struct gpc_linetab;

struct gpc_linetab *gpc_linetab_open(const char *path);
void gpc_linetab_close(struct gpc_linetab *table); /* NULL: no-op */

/* Finds the line of the code at `address` in a file mapped at `base`; writes the source's path, truncated to fit. */
bool gpc_linetab_find(const struct gpc_linetab *table, uint64_t base, uint64_t address,
	uint32_t *ret_line, char *file, size_t size);

#endif
