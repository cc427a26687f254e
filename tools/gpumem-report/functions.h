/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one object's symbol table, by address.
 *
 * libdw's own search reads the whole table for each address: in an object of PyTorch's, with some hundred thousand symbols,
 * a millisecond each.  Here it is read once, sorted by start; a look costs a binary search.
 *
 * Threads   One at a time.
 * Failure   Without memory the table is empty, and no function has a name.
 */
#ifndef GPC_REPORT_FUNCTIONS_H
#define GPC_REPORT_FUNCTIONS_H

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_function;

struct gpc_functions {
	struct gpc_function *rows; /* by start; of one start, the one to name comes last */
	size_t n;
};

void gpc_functions_read(struct gpc_functions *functions, Dwfl_Module *module);
void gpc_functions_fini(struct gpc_functions *functions);

/* The name of the innermost function that covers the address, which lives as long as the module; NULL: none does. */
const char *gpc_functions_find(const struct gpc_functions *functions, uint64_t address);

#endif
