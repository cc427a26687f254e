/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loaded module that has an address, by the loader's list of them.
 *
 * Threads   Any.  Waits for the loader's lock of that list, but not for the one that dladdr takes: a constructor may hold
 *           that and wait for a lock of the caller.
 * Failure   None.
 */
#ifndef GPC_BASE_MODULE_H
#define GPC_BASE_MODULE_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_module {
	uintptr_t start;
	uintptr_t end; /* 0: no module is there */
	bool is_named; /* its file's name begins with one of the words */
};

/* `starts` ends with NULL. */
struct gpc_module gpc_module_of(const void *address, const char *const starts[]);

/* True if the file's name, without its folder, begins with one of the words, which end with NULL. */
bool gpc_module_file_begins(const char *path, const char *const starts[]);

#endif
