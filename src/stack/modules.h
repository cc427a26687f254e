/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: the executable mappings of the process, with build ids, so that a reader can name addresses after the
 * process has ended, and on another machine.
 *
 *      dl_iterate_phdr --> [ new mappings as records ] --> loader's lock released --> sink
 *                           a buffer, only during a scan
 *
 * A scan compares the loader's list with the recorded modules.  It runs at start, and when a new stack was stored after
 * the loader opened an object: only objects on a stack need a record.
 *
 * Invariants  1 A mapping (start, end, bias, build id) is recorded once, as long as no other one takes its place.
 *             2 The sink is never called with the loader's lock held.
 * Threads     refresh: any.  While one thread scans, refresh returns at once in others, and the next new stack calls
 *             it again.  init and fini: one.
 * Locks       Call init and refresh with no lock of ours held.  dl_iterate_phdr waits for the loader's lock, whose
 *             holder may be in a constructor that calls CUDA and waits for a lock of ours.
 * Failure     A mapping that finds no room in the table or the sink has no record; the sink counts what it refuses.
 * Limits      GPUCACHE_MAX_MODULES mappings at a time; a process with PyTorch has some 700.
 *             Objects unknown to the loader (JIT code, mappings made by hand) have no record.
 */
#ifndef GPC_STACK_MODULES_H
#define GPC_STACK_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gpucache_format.h"
#include "stack/sink.h"

struct gpc_module;

struct gpc_modules {
	struct gpc_stack_sink sink;
	_Atomic uint64_t n_adds; /* objects opened by the loader until the last scan; 0: no scan */
	_Atomic bool is_looking; /* a thread scans, and owns the members below */
	struct gpc_module *known;
	uint32_t n_known;
};

/* Scans for the first time. */
GPC_MUST_CHECK enum gpc_status gpc_modules_init(
	struct gpc_modules *modules, const struct gpc_stack_sink *sink);
void gpc_modules_fini(struct gpc_modules *modules);

/* Scans if the loader has opened an object since the last scan.  If not, a call takes about 100 ns. */
void gpc_modules_refresh(struct gpc_modules *modules);

#endif
