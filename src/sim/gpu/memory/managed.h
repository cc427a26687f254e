/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where managed memory is: how many bytes of each allocation are on the device, the rest being on the host.
 *
 * Work that touches managed memory moves what it touches to the device, if need be in place of what was touched longest ago,
 * and lasts longer by the time of these moves.  Device memory comes first: its allocation never fails because of managed
 * memory, which goes back to the host.  So all managed memory of a device may be larger than the device.
 *
 * Invariants  The bytes on the device are at most what device memory and other processes leave.
 * Threads     Any; all but _squeeze_locked take the device's lock.
 * Limits      Bytes are counted, not pages: a second touch of other bytes of an allocation counts as one of the same.  Only
 *             work whose addresses are known touches: copies, fills and kernels with ranges.  An allocation moves to the
 *             device that it was made on.
 */
#ifndef GPC_SIM_MANAGED_H
#define GPC_SIM_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_sim_context;
struct gpc_sim_device;
struct gpc_sim_effect;

#define GPC_SIM_MAX_MANAGED 4096 /* further ones stay on the host */

struct gpc_sim_managed_block {
	uint64_t base;
	uint64_t size;
	uint64_t resident; /* bytes on the device */
	uint64_t touched;  /* the number of the last touch */
};

/* Of one device; under its lock. */
struct gpc_sim_managed {
	struct gpc_sim_managed_block *blocks;
	uint32_t n;
	uint64_t resident; /* the sum over blocks */
	uint64_t n_touches;
};

void gpc_sim_managed_add(struct gpc_sim_device *device, uint64_t base, uint64_t size);
void gpc_sim_managed_remove(struct gpc_sim_device *device, uint64_t base);
void gpc_sim_managed_fini(struct gpc_sim_device *device);

/* Moves what the work (NULL: none) touches.  Returns how long the work lasts, with the moves in both directions. */
uint64_t gpc_sim_managed_duration(
	const struct gpc_sim_context *context, const struct gpc_sim_effect *work);

/* Moves to the host what exceeds `room`. */
void gpc_sim_managed_squeeze_locked(struct gpc_sim_managed *managed, uint64_t room);

#endif
