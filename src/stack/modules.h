/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: the executable mappings of the process, with build ids, so that a reader can name addresses after the
 * process has ended, and on another machine.
 *
 *      dl_iterate_phdr --> [ new mappings as records ] --> loader's lock released --> sink
 *                           a buffer, only during a scan
 *
 * A scan compares the loader's list with the mappings that were ever recorded.  It runs at start, and when a new stack is
 * about to be stored after the loader opened or closed an object: only objects on a stack need a record.
 *
 * A mapping may take the place of one that was unloaded, and its code may return to the same addresses.  So addresses are
 * recorded with a generation, in bits that no address uses (gpucache_format.h): 0, unless the mapping overlaps one that was
 * recorded before.  A mapping that comes back to its place gets its old generation.
 *
 *      0x7f12_0000 .. 0x7f12_4000   plugin_a.so   generation 0   gone
 *                                   plugin_b.so   generation 1   loaded
 *
 * Our dlclose counts its calls (gpc_modules_unloads), so a capture learns by one comparison that nothing was unloaded
 * since the last look at the loader.  Only frames in places that an object has left are looked up, and if no known object
 * is there now, the loader is asked.
 *
 * Invariants  1 A mapping (start, end, bias, build id) is recorded once, and no two records overlap: their addresses
 *               have generations.
 *             2 The sink is never called with the loader's lock held.
 *             3 Rules of unloaded code are forgotten (walk.h) before `watched` tells that its unloading was seen.
 * Threads     mark, watch and look: any.  init and fini: one.
 * Ordering    Scans are numbered under the loader's lock, so of two the one with the higher number saw the later list.
 *             A mapping is gone if a finished scan has a higher number than the last one that saw it.
 * Locks       Call init, watch, look and mark with no lock of ours held.  dl_iterate_phdr waits for the loader's lock,
 *             whose holder may be in a constructor that calls CUDA and waits for a lock of ours.  `lock` is taken inside
 *             the loader's, and nothing is waited for inside it.
 * Failure     A mapping that finds no room in the table or the sink has no record; the sink counts what it refuses.  In
 *             the place of another one, its frames get GPC_NO_GENERATION.
 * Limits      GPUCACHE_MAX_MODULES mappings in all; a process with PyTorch has some 700.
 *             Objects unknown to the loader (JIT code, mappings made by hand) have no record.
 *             Unloading that does not go through our dlclose (by libc itself, by an object opened with RTLD_DEEPBIND) is
 *             noticed at the next new stack.
 */
#ifndef GPC_STACK_MODULES_H
#define GPC_STACK_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/status.h"
#include "gpucache_format.h"
#include "stack/sink.h"
#include "stack/walk.h"

/* The generation of code in the place of an unloaded mapping that is in no recorded one. */
#define GPC_NO_GENERATION 0x7fffu

/* Room for the name of a file without folders, truncated to fit. */
#define GPC_MODULE_NAME 40

struct gpc_module;

/* What the loader counts: objects that it opened, and closed. */
struct gpc_loader_counts {
	uint64_t n_opened;
	uint64_t n_closed;
};

struct gpc_modules {
	/* Fixed after init. */
	struct gpc_stack_sink sink;
	struct gpc_walk *walk; /* whose rules of unloaded code are forgotten */
	struct gpc_module *known;

	_Atomic uint64_t watched; /* gpc_modules_unloads at the last look */
	_Atomic uint32_t
		n_turns; /* scans that found a place with another owner, or none any more */
	/* [start, end) has every place whose frames may need a generation; end 0: there is none. */
	_Atomic uint64_t start;
	_Atomic uint64_t end;

	/* Lock: lock, as are the members of `known`, which is sorted by start. */
	uint32_t n_known;
	uint32_t n_generations;
	uint32_t n_scans;
	uint32_t last_scan;              /* the finished one with the highest number */
	struct gpc_loader_counts counts; /* at that scan */
	struct gpc_lock lock;
};

/*
 * Calls of dlclose: those in progress in the lower 16 bits, those that ended above.  In each call, gpc_modules_unload
 * calls `close` between two changes, so that what it unloads is either in progress or counted.
 */
extern _Atomic uint64_t gpc_modules_unloads __attribute__((visibility("hidden")));
int gpc_modules_unload(int (*close)(void *handle), void *handle);

/* Scans for the first time.  `walk` may be NULL. */
GPC_MUST_CHECK enum gpc_status gpc_modules_init(
	struct gpc_modules *modules, const struct gpc_stack_sink *sink, struct gpc_walk *walk);
void gpc_modules_fini(struct gpc_modules *modules);

/* Scans if the loader has opened or closed an object since the last scan.  If not, a call takes about 100 ns. */
void gpc_modules_look(struct gpc_modules *modules);

/* Looks if dlclose was called since the last look.  Call it before a walk. */
static inline void gpc_modules_watch(struct gpc_modules *modules)
{
	if (__builtin_expect(atomic_load_explicit(&gpc_modules_unloads, memory_order_acquire) !=
				     atomic_load_explicit(&modules->watched, memory_order_acquire),
		    0))
		gpc_modules_look(modules);
}

/*
 * Gives n return addresses of the calling thread's stack their generations.  False: one lies where an object has been and
 * none is known now, so that the next call may give it another generation, even if the number below stays.
 */
bool gpc_modules_mark_all(struct gpc_modules *modules, uint64_t *frames, uint32_t n);

static inline bool gpc_modules_mark(struct gpc_modules *modules, uint64_t *frames, uint32_t n)
{
	return __builtin_expect(
		       atomic_load_explicit(&modules->end, memory_order_relaxed) == 0, 1) ||
	       gpc_modules_mark_all(modules, frames, n);
}

/*
 * If this number grew since before a walk, rules of unloaded code may have misled the walk, and its addresses may have other
 * generations now.
 */
static inline uint32_t gpc_modules_n_turns(const struct gpc_modules *modules)
{
	return atomic_load_explicit(&modules->n_turns, memory_order_acquire);
}

/* Where a recorded frame is, or was. */
struct gpc_module_place {
	uintptr_t address;
	bool is_loaded;             /* what it was in is still there */
	char name[GPC_MODULE_NAME]; /* else the file that it was in, without folders, */
	uintptr_t offset;           /* and the place there; no name: not known */
};

void gpc_modules_find(
	struct gpc_modules *modules, uint64_t frame, struct gpc_module_place *ret_place);

#endif
