/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names exported functions at many addresses, in one pass over the symbols of each loaded object.
 *
 * dladdr names one address, and passes over all symbols of its object: two milliseconds for PyTorch's 300,000, and a
 * failure names hundreds of addresses.
 *
 *      addresses, sorted      ..a1.....a2.a3..........a4....
 *      objects                  [ libtorch_cpu.so ]  [ python ]
 *      symbols, in any order    |--f--|    |-g-|       |-h-|      a1 is in f, a2 and a3 are in g, a4 is in no function
 *
 * Threads     Any.
 * Locks       Call with no lock of ours held.  The functions of the sink run inside the loader's lock: they must not load
 *             or wait.
 * Failure     An address in no object is not told, one in no exported function is told without a name.
 * Limits      Objects with DT_GNU_HASH or DT_HASH, as all shared ones.
 */
#ifndef GPC_STACK_EXPORTED_H
#define GPC_STACK_EXPORTED_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_exported {
	uint64_t address;
	const char *name; /* of its function, in the object's memory; NULL: none */
	uint64_t start;   /* of that function */
	uint32_t tag;     /* the caller's */
};

struct gpc_exported_sink {
	void *self;
	/* False: addresses in the object at `path` need no names.  "": the executable. */
	bool (*wants)(void *self, const char *path);
	/* Called once for each address that is in an object; `base` is what the object's addresses are relative to. */
	void (*found)(
		void *self, const struct gpc_exported *exported, const char *path, uint64_t base);
};

/* rows[0 .. n) have distinct addresses in ascending order. */
void gpc_exported_find(struct gpc_exported *rows, uint32_t n, const struct gpc_exported_sink *sink);

/* True if the object imports a function of one of these names, which end with NULL; call inside dl_iterate_phdr. */
bool gpc_exported_is_imported(const struct dl_phdr_info *info, const char *const names[]);

#endif
