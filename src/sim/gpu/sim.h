/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated machine: its clock, devices, queue of effects, faults and counters.
 *
 *      config.h --> struct gpc_sim --+-- clock.h
 *                                    +-- device.h x n     addresses, bytes, memory in use
 *                                    +-- effect.h         what work does to memory when it ends
 *                                    +-- data.h           which bytes the host stores
 *                                    +-- ipc.h            memory that other processes open
 *                                    +-- vmm.h            reserved addresses, physical memory, mappings
 *                                    +-- fault.h          what fails on demand
 *                                    +-- mempool.h, graph_memory.h    memory that streams and graphs allocate
 *                                    +-- race.h           memory reused too early; only if attached
 *                                    '-- stream.h, capture.h, graph.h    contexts, streams, events, graphs
 *
 *      two interfaces:  driver_sim.h (struct gpc_driver)      src/sim/libcuda (libcuda.so.1; the other libraries are over it)
 *
 * Invariants  1 A machine belongs to one process; machines of several processes share memory through ipc.h only.
 * Threads     Any.  Lock order: capture, contexts, context, ipc or effects, vmm, pools and graphs, device,
 *             race.
 * Failure     gpc_sim_create: NULL if the kernel has no room for the addresses, or a count exceeds config.h's limit.
 * Limits      Peer access is not checked: a kernel may touch the allocations of every device, except memory of vmm.h.
 *             A process does not see what other processes use of a device.  Work runs at full speed, whatever runs on
 *             other streams.
 */
#ifndef GPC_SIM_SIM_H
#define GPC_SIM_SIM_H

#include "base/list.h"
#include "sim/gpu/config.h"
#include "sim/gpu/device.h"
#include "sim/gpu/execution/clock.h"
#include "sim/gpu/execution/effect.h"
#include "sim/gpu/execution/graph_memory.h"
#include "sim/gpu/execution/race.h"
#include "sim/gpu/fault.h"
#include "sim/gpu/memory/data.h"
#include "sim/gpu/memory/mempool.h"
#include "sim/gpu/memory/vmm.h"

struct gpc_sim {
	struct gpc_sim_config config; /* fixed */
	struct gpc_sim_clock clock;
	struct gpc_sim_device devices[GPC_SIM_MAX_DEVICES];
	struct gpc_sim_vmm vmm;
	struct gpc_sim_effects effects;
	struct gpc_sim_data data;
	struct gpc_sim_faults faults;
	struct gpc_sim_mempools mempools;
	struct gpc_sim_graph_memory graph_memory;
	struct gpc_sim_race *race; /* NULL: no detector */

	_Atomic uint32_t n_contexts; /* created so far; the number of the last one */
	_Atomic uint64_t n_streams;  /* created so far; the number of the last one */
	_Atomic unsigned n_captures; /* open captures; read without the lock */

	/* Lock: capture_lock. */
	struct gpc_list captures;
	uint64_t n_captures_ever;

	pthread_mutex_t capture_lock;

	/* Lock: contexts_lock. */
	struct gpc_list contexts; /* all but green ones */

	pthread_mutex_t contexts_lock;

	/* Lock: ipc_lock. */
	struct gpc_list opened; /* memory that was opened from other processes */

	pthread_mutex_t ipc_lock;
};

struct gpc_sim *gpc_sim_create(const struct gpc_sim_config *config);
void gpc_sim_destroy(struct gpc_sim *sim);

/* The device of the address `ptr`; NULL for a host address, and for an address of vmm.h. */
struct gpc_sim_device *gpc_sim_device_of(struct gpc_sim *sim, uint64_t ptr);

/* The number of the allocation that contains `ptr`, never reused on this device; 0 if there is none. */
uint64_t gpc_sim_number_of(struct gpc_sim_device *device, uint64_t ptr);

/* The host's address of the bytes at a device or host address. */
void *gpc_sim_bytes(struct gpc_sim *sim, uint64_t ptr);

/*
 * True if ptr[0 .. size) lies in one allocation, or in mapped addresses that some device may read.  True for every host
 * address.
 */
bool gpc_sim_is_valid(struct gpc_sim *sim, uint64_t ptr, uint64_t size);

/* True if a kernel on that device may read, or with must_write write, all of ptr[0 .. size). */
bool gpc_sim_may_touch(
	struct gpc_sim *sim, int device, uint64_t ptr, uint64_t size, bool must_write);

/* Begins a call: spends its cost, and returns the injected fault that is due, or CUDA_SUCCESS. */
static inline CUresult gpc_sim_call(struct gpc_sim *sim, enum gpc_sim_cost cost, const char *entry)
{
	gpc_sim_clock_spend(&sim->clock, sim->config.cost_ns[cost]);
	return gpc_sim_fault_check(&sim->faults, entry);
}

#endif
