/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the calling thread: return addresses, innermost first.
 *
 * On x86-64, cached rules (walk.h) make the walk, which were learned from libunwind.  On other processors, and for
 * frames without a rule, libunwind makes it (26 frames: 0.2 us once its cache knows the code).  Without libunwind,
 * glibc's backtrace makes it (some 3 us).
 *
 * libunwind is opened with RTLD_LOCAL, and never linked: its shared object exports _Unwind_* and backtrace, so a
 * preloaded library that links it would replace the exception unwinder of the whole process.
 *
 * Threads     capture: any.  init and fini: one, before and after.
 * Locks       Call capture with no lock of ours held.  The first walk through unknown code takes the loader's lock
 *             (dl_iterate_phdr) and libunwind's own; a thread's first walk may make the loader allocate the thread's
 *             libunwind TLS.  Another thread may hold the loader's lock in a constructor that calls CUDA, and wait for
 *             a lock of ours.
 * Failure     No frames.
 * Limits      A walk stops at code without unwind tables.  Code in the place of unloaded code may be unwound by the
 *             old tables: on x86-64 until gpc_walk_forget, elsewhere while libunwind caches them.  Once code
 *             was unloaded, glibc's backtrace replaces libunwind on x86-64.  If a process forks while another thread is
 *             in libunwind's slow path, the child may find libunwind's lock taken for ever.
 *             If the program uses the same libunwind.so.8, our settings apply to it, too: the caching policy of the
 *             local address space (one cache per thread), the cache size, and the memory check.  The program's own
 *             walks get faster and give the same frames.  libunwind keeps a pipe open, which our walks do not use if
 *             process_vm_readv is allowed.
 */
#ifndef GPC_STACK_UNWIND_H
#define GPC_STACK_UNWIND_H

#include <stdint.h>

#include "stack/walk.h"

/* The deepest walk. */
#define GPC_UNWIND_MAX_FRAMES 96u

struct gpc_unwind {
	/* Fixed after init. */
	int (*backtrace)(void **addresses, int n); /* of libunwind or glibc; NULL: neither works */
	struct gpc_walk walk;                      /* off without libunwind */
	/* Set by the owner, or NULL: forgets the rules of what was unloaded; true if there was something. */
	bool (*forget_unloaded)(void *self);
	void *self;
};

/*
 * Opens the best unwinder and walks once, so that no later walk loads a library or allocates.  lookup_in is libc's
 * dlsym: the name dlsym may be interposed, by us among others.
 */
void gpc_unwind_init(struct gpc_unwind *unwind, void *(*lookup_in)(void *handle, const char *name));

/* As init, but without libunwind. */
void gpc_unwind_init_glibc(struct gpc_unwind *unwind);

/* Frees the rules; capture then finds no frames.  libunwind stays loaded, because threads have data in it. */
void gpc_unwind_fini(struct gpc_unwind *unwind);

/*
 * Writes at most max <= GPC_UNWIND_MAX_FRAMES return addresses, innermost first, and returns their number.  frames[0]
 * lies in the caller of gpc_unwind_capture, or `skip` frames further out.
 */
uint32_t gpc_unwind_capture(
	struct gpc_unwind *unwind, uint64_t *frames, uint32_t max, uint32_t skip);

/* As gpc_unwind_capture, from `start`, which a function of this thread that has not returned yet got of gpc_walk_caller. */
uint32_t gpc_unwind_capture_from(struct gpc_unwind *unwind, const struct gpc_walk_start *start,
	uint64_t *frames, uint32_t max, uint32_t skip);

#endif
