/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA's plugin: what we ask it, and what is known of its memories and programs.
 *
 * A handle is asked about when it is first seen; its row lasts until it ends.
 *
 * Threads   Any.  The plugin's functions are called with no lock of ours held.
 * Failure   Of what the plugin does not tell, nothing is known.
 * Limits    MAX_MEMORIES and MAX_PROGRAMS of pjrt_books.c.  More programs are asked about each time.
 */
#ifndef GPC_PRELOAD_PJRT_BOOKS_H
#define GPC_PRELOAD_PJRT_BOOKS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gpucache_format.h"
#include "preload/pjrt_abi.h"

/* The plugin's own table.  gpc_pjrt_begin comes before all others. */
extern _Atomic(const struct pjrt_table *) gpc_pjrt_own;
void gpc_pjrt_begin(const struct pjrt_table *table);

static inline bool gpc_pjrt_is_there(void)
{
	return atomic_load_explicit(&gpc_pjrt_own, memory_order_acquire);
}

/* Calls the plugin, and returns its error or NULL. */
void *gpc_pjrt_call(enum pjrt_place place, void *args);
void gpc_pjrt_end_error(void *error); /* NULL: no-op */

/* Calls for ourselves; false, and the error is gone, if the plugin refuses. */
#define GPC_PJRT_ASK(place, question, about) \
	gpc_pjrt_ask(place, &(question)->args, sizeof *(question), (void *)(uintptr_t)(about))
bool gpc_pjrt_ask(enum pjrt_place place, struct pjrt_args *args, size_t size, void *about);

struct gpc_pjrt_memory {
	_Atomic uintptr_t memory; /* 0: free; stored last */
	int device;               /* -1: not the device's own memory */
	void *handle;             /* the plugin's device */
	_Atomic uint64_t first;   /* arrays made there are between these addresses */
	_Atomic uint64_t end;     /* 0: none was seen */
};

/* NULL: the table is full. */
struct gpc_pjrt_memory *gpc_pjrt_memory_of(void *memory);

/* A client is to be destroyed, and its memories with it. */
void gpc_pjrt_client_end(const void *client);

/* What XLA has handed out on a device; handle NULL: on the first one.  0: unknown. */
uint64_t gpc_pjrt_in_use(void *handle);

struct gpc_pjrt_program {
	_Atomic uintptr_t loaded; /* 0: free, ENDED: free again; stored last */
	size_t n_outputs;
	struct gpucache_oom_program needs; /* with its name */
};

/* What is known of a program, also if the table is full; then in *room.  NULL: nothing. */
const struct gpc_pjrt_program *gpc_pjrt_program_of(void *loaded, struct gpc_pjrt_program *room);
void gpc_pjrt_program_end(const void *loaded);

/* Copies the needs of a program whose temporaries are about so many bytes; false if none is. */
bool gpc_pjrt_program_of_size(uint64_t temporaries, struct gpucache_oom_program *ret_needs);

#endif
