/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spilling, with the option `spill`: a request that every rung of the ladder has failed to serve gets managed memory, which
 * the driver keeps on the host and moves to the device as work touches it.  The job is slow instead of dead.
 *
 *      the ladder fails --> may it be spilled? --> cuMemAllocManaged, advised to prefer the device --> the ledger
 *                                | no
 *                                '--> the driver's own error, as without the option
 *
 * Each spilled request is an allocation of its own, and goes back to the driver when the program frees it: nothing of it is
 * cached, so that it is used last and returned first, and the driver orders its reuse.
 *
 * Not spilled: what a limit of ours refuses, and all but plain device memory (cuMemAlloc).  Nor anything while
 *   - SIZE would be exceeded, or less than 1/8 of the host or of a control group would stay free, all that is spilled
 *     counted as if it were on the host
 *   - other processes hold more than 1/16 of the device: they would run short when we move memory there
 *   - a caller with a cache of its own has something left to give back: it is refused at first, and its next request for
 *     memory is its last attempt if it has the same size; while a stream is captured such a cache gives nothing back, so
 *     that the first attempt is the last
 *   - the device cannot fault on managed memory (concurrentManagedAccess)
 * One line says each reason once.
 *
 * Threads   Any; the caller holds no lock.
 * Failure   GPC_DEVICE_NO_MEMORY, as the ladder ended with.
 */
#ifndef GPC_RUNTIME_RESCUE_SPILL_H
#define GPC_RUNTIME_RESCUE_SPILL_H

#include "runtime/rescue/rescue.h"

/* A spilled allocation takes a multiple of this: the driver's pages on the device. */
#define GPC_SPILL_GRAIN (UINT64_C(64) << 10)

/* Call once at the start, after the options are read: measures what `auto` means. */
void gpc_spill_start(void);

static inline bool gpc_spill_is_on(void)
{
	return gpc_runtime.config.spill != 0;
}

/* What spill:auto could have put into host memory; 0 if the option is set, or if the device cannot. */
uint64_t gpc_spill_offer(const struct gpc_device *device);

/* Serves a request that failed for lack of memory on the device, and enters it in the ledger: sets rescue->spilled. */
GPC_MUST_CHECK enum gpc_status gpc_spill_take(struct gpc_rescue *rescue);

/* Call after the program was refused a request, and after a caller with a cache of its own was served one. */
void gpc_spill_refused(const struct gpc_rescue *rescue);
void gpc_spill_served(void);

/* Call when the ledger forgets spilled memory. */
void gpc_spill_returned(uint64_t size);

/* At the end: one line, if anything was spilled. */
void gpc_spill_say_end(void);

#endif
