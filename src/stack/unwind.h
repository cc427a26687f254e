/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the calling thread: return addresses, innermost first.
 *
 * On x86-64 by cached rules (walk.h), which are learned from libunwind; elsewhere, and for frames that follow no rule,
 * by libunwind (26 frames: 0.2 us once its cache knows the code); without libunwind by glibc's backtrace (some 3 us).
 * libunwind is opened with RTLD_LOCAL and never linked: its shared object exports _Unwind_* and backtrace, so a
 * preloaded library that links it would replace the exception unwinder of the whole process.
 *
 * Threads     capture: any.  init and fini: one, before and after.
 * Locks       Call it with no lock of ours held.  The first walk through unknown code takes the loader's lock
 *             (dl_iterate_phdr) and libunwind's own; a thread's first walk may make the loader allocate the thread's
 *             libunwind TLS.  A thread that holds the loader's lock may be in a constructor that calls CUDA, and so be
 *             waiting for a lock of ours.
 * Failure     No frames.
 * Limits      Stops at code without unwind tables.  Code loaded in the place of unloaded code may be unwound by the old
 *             tables: on x86-64 until gpc_walk_forget_unloaded, elsewhere while libunwind caches them.  Once code has
 *             been unloaded on x86-64, glibc's backtrace makes the walks that the rules cannot finish.  A child forked
 *             while another thread was in libunwind's slow path may find libunwind's lock taken, which cannot be
 *             repaired from outside.
 *             If the program uses the same libunwind.so.8, these settings change for the whole process: the caching
 *             policy of the local address space (one cache per thread), the cache size, and the memory check.  The
 *             program's own walks get faster and give the same frames.  libunwind keeps a pipe open, which our walks
 *             do not use if process_vm_readv is allowed.
 */
#ifndef GPC_STACK_UNWIND_H
#define GPC_STACK_UNWIND_H

#include <stdint.h>

#include "stack/walk.h"

/* The deepest walk. */
#define GPC_UNWIND_MAX_FRAMES 256u

struct gpc_unwind {
	/* Fixed after init. */
	int (*backtrace)(void **addresses, int n); /* libunwind's or glibc's; NULL: neither works */
	struct gpc_walk walk;                      /* the fast path; off without libunwind */
};

/*
 * Opens the best unwinder and walks once, so that the first real walk does not load or allocate.  lookup_in is dlsym
 * for a handle or RTLD_DEFAULT: the library that contains us may interpose dlsym itself.
 */
void gpc_unwind_init(struct gpc_unwind *unwind, void *(*lookup_in)(void *handle, const char *name));

/* As init, but without libunwind. */
void gpc_unwind_init_glibc(struct gpc_unwind *unwind);

/* Turns capture off and frees the rules; libunwind stays loaded, because threads have data in it. */
void gpc_unwind_fini(struct gpc_unwind *unwind);

/*
 * Writes at most max (<= GPC_UNWIND_MAX_FRAMES) return addresses, innermost first, and returns their number.  With
 * skip 0, frames[0] lies in the caller of gpc_unwind_capture; each skip omits one more frame.
 */
uint32_t gpc_unwind_capture(
	struct gpc_unwind *unwind, uint64_t *frames, uint32_t max, uint32_t skip);

#endif
