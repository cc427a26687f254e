/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one object's symbol table, by address.
 *
 * libdw searches the whole table for each address, which takes a millisecond in PyTorch's libraries with hundreds of
 * thousands of symbols.  Here the table is read once and sorted by start; a lookup is a binary search.
 *
 * Threads   One at a time.
 * Failure   An object without a symbol table has no rows.
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

/* Returns the name of the function with the highest start that covers the address, or NULL.  The module owns it. */
const char *gpc_functions_find(const struct gpc_functions *functions, uint64_t address);

#endif
