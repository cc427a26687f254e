/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one object's symbol table, by address.
 *
 * libdw's own search reads the whole table for each address: a millisecond in a PyTorch library with hundreds of
 * thousands of symbols.  Here the table is read once and sorted by start; a lookup is a binary search.
 *
 * Threads   One at a time.
 * Failure   Out of memory: the table is empty, and no function has a name.
 */
#ifndef GPC_REPORT_FUNCTIONS_H
#define GPC_REPORT_FUNCTIONS_H

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_function;

struct gpc_functions {
	struct gpc_function *rows; /* by start; among equal starts the preferred name comes last */
	size_t n;
};

void gpc_functions_read(struct gpc_functions *functions, Dwfl_Module *module);
void gpc_functions_fini(struct gpc_functions *functions);

/* Returns the name of the innermost function that covers the address, or NULL; valid as long as the module. */
const char *gpc_functions_find(const struct gpc_functions *functions, uint64_t address);

#endif
