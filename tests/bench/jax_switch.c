/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands before the library in LD_PRELOAD and decides, while `jax_switch` is not 0, that JAX's arrays are recorded:
 * jax_step.py draws it anew for each step.  JAX gets the library's copy of XLA's table, in which each hook is behind a
 * choice between it and the plugin's function.  Arrays end in the recording while it is 2, too, but none is made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "preload/pjrt_abi.h"

typedef void *dlsym_fn(void *handle, const char *name);
typedef const struct pjrt_table *get_fn(void);

int jax_switch = 1;

static get_fn *recorded;
static get_fn *plain;
static const struct pjrt_table *tables[2]; /* the plugin's, the library's */

#define CHOOSE(place, least)                                     \
	static void *choose_##place(void *args)                  \
	{                                                        \
		int is_on = jax_switch && jax_switch <= (least); \
                                                                 \
		return tables[is_on]->fns[place](args);          \
	}

CHOOSE(PJRT_CLIENT_DESTROY, 2)
CHOOSE(PJRT_FROM_HOST_BUFFER, 1)
CHOOSE(PJRT_LOADED_DESTROY, 2)
CHOOSE(PJRT_EXECUTE, 1)
CHOOSE(PJRT_BUFFER_DESTROY, 2)
CHOOSE(PJRT_BUFFER_DELETE, 2)
CHOOSE(PJRT_BUFFER_TO_DEVICE, 1)
CHOOSE(PJRT_BUFFER_TO_MEMORY, 1)

static const struct pjrt_table *get(void)
{
	static char copy[8192];
	struct pjrt_table *ours = (void *)copy;

	tables[1] = recorded();
	tables[0] = plain();
	memcpy(copy, tables[1], tables[1]->size);
#define PUT(place) ours->fns[place] = choose_##place
	PUT(PJRT_CLIENT_DESTROY);
	PUT(PJRT_FROM_HOST_BUFFER);
	PUT(PJRT_LOADED_DESTROY);
	PUT(PJRT_EXECUTE);
	PUT(PJRT_BUFFER_DESTROY);
	PUT(PJRT_BUFFER_DELETE);
	PUT(PJRT_BUFFER_TO_DEVICE);
	PUT(PJRT_BUFFER_TO_MEMORY);
	return ours;
}

/* A jump to the library's for all other names, so that RTLD_NEXT is that of the caller. */
void *dlsym(void *restrict handle, const char *restrict name)
{
	static dlsym_fn *next;
	static dlsym_fn *own;
	void *found;

	if (!own) {
		*(void **)(void *)&own = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!own)
			*(void **)(void *)&own = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		*(void **)(void *)&next = own(RTLD_NEXT, "dlsym");
	}
	if (strcmp(name, "GetPjrtApi") != 0)
		return next(handle, name);
	*(void **)(void *)&recorded = next(handle, name);
	*(void **)(void *)&plain = own(handle, name);
	*(get_fn **)(void *)&found = get;
	return plain ? found : NULL;
}
