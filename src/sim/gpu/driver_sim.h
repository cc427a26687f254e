/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct gpc_driver over a simulated device: for unit tests, benches and gpumem-replay.
 *
 *      struct gpc_sim_config config = gpc_sim_config_default();
 *      struct gpc_sim *sim = gpc_sim_create(&config);
 *      struct gpc_sim_driver driver;
 *
 *      gpc_sim_driver_init(&driver, sim, 0, NULL);
 *      driver.base.ops->mem_alloc(&driver.base, 2 * GPC_MIB, &ptr);
 *
 * A gpc_stream is the address of a struct gpc_sim_stream; 0 and 1 are the legacy default stream, 2 is the calling
 * thread's.  A gpc_event is the address of a struct gpc_sim_event.
 *
 * Invariants  1 fence_record and fence_wait take tens of nanoseconds and no lock, mem_alloc takes one short lock.  That
 *               holds while there are no costs, faults, captures, queued context events, race detector, or effects
 *               that wait for their end.
 * Threads     Any, as driver.h demands.
 * Failure     As driver.h.  gpc_sim_fault_add(&sim->faults, "cuMemAlloc_v2", 1, 1, 2) makes the next allocation fail
 *             with CUresult 2.  Faults have the names of the entry points that driver_cuda.c would call.
 */
#ifndef GPC_SIM_DRIVER_SIM_H
#define GPC_SIM_DRIVER_SIM_H

#include "driver/driver.h"
#include "sim/gpu/execution/stream.h"

/* Numbers of calls made through a driver, including failed ones.  Other threads may see a number late. */
struct gpc_sim_counters {
	_Atomic uint64_t n_mem_alloc;
	_Atomic uint64_t n_mem_free;
	_Atomic uint64_t n_mem_info;
	_Atomic uint64_t n_event_create;
	_Atomic uint64_t n_event_destroy;
	_Atomic uint64_t n_fence_record;
	_Atomic uint64_t n_fence_wait;
	_Atomic uint64_t n_event_query;
	_Atomic uint64_t n_sync; /* event_wait and context_sync */
	_Atomic uint64_t n_stream_wait;
	_Atomic uint64_t n_page_map;
	_Atomic uint64_t n_page_unmap; /* a call for several pages counts once */
};

struct gpc_sim_driver {
	struct gpc_driver base;
	struct gpc_sim *sim;
	struct gpc_sim_context *context;
	bool owns_context;
	atomic_bool
		has_beside; /* the stream that mem_free_beside needs; it costs nothing but its creation */
	struct gpc_sim_counters counters;
};

/* Initialises a driver for `context`; if that is NULL, for a new context on `device`, which fini destroys. */
GPC_MUST_CHECK enum gpc_status gpc_sim_driver_init(struct gpc_sim_driver *driver,
	struct gpc_sim *sim, unsigned device, struct gpc_sim_context *context);
void gpc_sim_driver_fini(struct gpc_sim_driver *driver);

/*
 * For tests: submits a kernel of `duration_ns`, which at its end writes `fill` to every byte of ptr[0 .. size).  With
 * fill = -1 the kernel only reads the bytes; with size = 0 it touches no memory.
 */
GPC_MUST_CHECK enum gpc_status gpc_sim_driver_launch(struct gpc_sim_driver *driver,
	gpc_stream stream, uint64_t duration_ns, gpc_devptr ptr, uint64_t size, int fill);

#endif
