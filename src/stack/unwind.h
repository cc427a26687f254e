/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the calling thread: return addresses, innermost first.
 *
 * libunwind where the machine has it (26 frames: 0.2 us once its cache knows the code), glibc's
 * backtrace otherwise (some 3 us), nothing where neither works.  libunwind is opened with
 * RTLD_LOCAL and never linked: its shared object exports _Unwind_* and backtrace, and a preloaded
 * library that needs it would replace the exception unwinder of the whole process.
 *
 * Threads     capture: any.  init and fini: one, before and after.
 * Locks       Call it with no lock of ours held.  The first walk through unknown code takes the
 *             loader's lock (dl_iterate_phdr) and libunwind's own; the first walk of a thread may
 *             make the loader allocate that thread's part of libunwind's thread-local data.
 *             Whoever holds the loader's lock may be waiting in a constructor that calls CUDA, and
 *             so for us.
 * Failure     No frames.
 * Limits      Stops where code has no unwind tables.  Code that was unloaded and replaced by other
 *             code at the same addresses may be unwound by the old tables for a while.  A child
 *             forked while another thread was inside libunwind's slow path may find its lock taken;
 *             libunwind offers no way to repair that.
 *             Of a libunwind.so.8 that the program uses, too, this changes for the whole process: the local
 *             address space's caching policy (one cache a thread), its cache's size, and how it asks
 *             whether memory is there.  Its own walks get faster by that, and give the same frames.
 *             libunwind holds a pipe, which no walk of ours uses where process_vm_readv is allowed.
 */
#ifndef GPC_STACK_UNWIND_H
#define GPC_STACK_UNWIND_H

#include <stdint.h>

#include "stack/walk.h"

/* The deepest walk. */
#define GPC_UNWIND_MAX_FRAMES 256u

enum gpc_unwinder {
	GPC_UNWINDER_NONE,
	GPC_UNWINDER_GLIBC,
	GPC_UNWINDER_LIBUNWIND,
};

struct gpc_unwind {
	/* Fixed after init. */
	enum gpc_unwinder kind;
	int (*backtrace)(void **addresses, int n);
	void *library;        /* libunwind's handle, or NULL */
	struct gpc_walk walk; /* the short way; off without libunwind */
};

/*
 * Opens what there is and walks once, so that the first real walk does not load or allocate.
 * lookup_in is dlsym for a handle, RTLD_DEFAULT too: the library that contains us may interpose
 * dlsym itself.
 */
void gpc_unwind_init(struct gpc_unwind *unwind, void *(*lookup_in)(void *handle, const char *name));

/* As init, where libunwind must not be used. */
void gpc_unwind_init_glibc(struct gpc_unwind *unwind);

/* Forgets; libunwind stays loaded, because threads have data in it. */
void gpc_unwind_fini(struct gpc_unwind *unwind);

/*
 * Writes at most max (<= GPC_UNWIND_MAX_FRAMES) return addresses, innermost first, and returns how
 * many.  With skip 0 frames[0] lies in the function that called gpc_unwind_capture; each skip
 * leaves out one more.
 */
uint32_t gpc_unwind_capture(
	struct gpc_unwind *unwind, uint64_t *frames, uint32_t max, uint32_t skip);

#endif
