/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines: the device of one run with its streams, and a driver that counts calls.
 *
 *      policy --> machine.driver (counts) --> driver_sim      a simulated GPU of any size, with a virtual clock
 *
 * Invariants  1 Reserved bytes are measured: the free bytes of the device at the start, less those now.  A policy's own
 *               count may be wrong.
 *             2 Stream 0 is the legacy default stream, all others are non-blocking.
 *             3 Calls cost no time.  The clock moves only when the trace passes time or the host
 *               waits for the device.
 * Threads     One.
 * Failure     gpc_machine_open: GPC_NO_METADATA.
 */
#ifndef GPC_REPLAY_MACHINE_H
#define GPC_REPLAY_MACHINE_H

#include <stdbool.h>

#include "driver/driver.h"
#include "sim/gpu/driver_sim.h"

struct gpc_machine_config {
	uint64_t device_bytes;
	uint64_t fixed_bytes; /* held by others from the start until the end */
	uint32_t n_streams;
	bool has_work; /* attaches the race detector */
	bool is_late;  /* for the race detector: is_late of the policy (policy.h) */
};

/* Counts the calls that it passes to `inner`. */
struct gpc_counting_driver {
	struct gpc_driver base;
	struct gpc_driver *inner;
	/*
	 * By kind.  Destroying an event counts as creating one.  Not counted: now_ns, and the page functions reserve,
	 * open and release.
	 */
	uint64_t n_calls[GPC_SIM_COST_COUNT];
};

struct gpc_machine {
	struct gpc_driver *driver; /* for policies: &counting.base */
	struct gpc_counting_driver counting;
	uint64_t device_bytes;
	uint64_t free_at_start_bytes;
	gpc_stream *streams;
	uint32_t n_streams;
	gpc_event event; /* for gpc_machine_order */
	struct gpc_sim *sim;
	struct gpc_sim_driver sim_driver;
};

GPC_MUST_CHECK enum gpc_status gpc_machine_open(
	struct gpc_machine *machine, const struct gpc_machine_config *config);
void gpc_machine_close(struct gpc_machine *machine);

/*
 * Charges the device for one physical memory handle of `size` bytes, and takes the charge back.  Creating a handle counts as one allocation and releasing it as one free, because the
 * costs are alike.  On an H100, for 2 to 512 MiB (tests/gpu/results):
 *
 *      cuMemCreate, cuMemMap, cuMemSetAccess    43 to 86 us      cuMemAlloc    64 to 90 us
 *      cuMemUnmap, cuMemRelease                 33 to 332 us     cuMemFree     51 to 317 us
 */
GPC_MUST_CHECK enum gpc_status gpc_machine_create_handle(
	struct gpc_machine *machine, uint64_t size);
void gpc_machine_release_handle(struct gpc_machine *machine, uint64_t size);

uint64_t gpc_machine_reserved_bytes(struct gpc_machine *machine);

/* Bytes of the smallest device that would have refused no call so far. */
uint64_t gpc_machine_peak_bytes(struct gpc_machine *machine);

/* Records the event on stream number i, and counts the call. */
GPC_MUST_CHECK enum gpc_status gpc_machine_record(
	struct gpc_machine *machine, uint32_t i, gpc_event event);

/* ---- actions of the program: not counted ---- */

/* Advances the virtual clock, as if the host computed for `duration_ns`. */
void gpc_machine_pass_time(struct gpc_machine *machine, uint64_t duration_ns);

/* Submits a kernel of `duration_ns` that uses the bytes at `address`. */
GPC_MUST_CHECK enum gpc_status gpc_machine_work(struct gpc_machine *machine, uint32_t stream,
	uint64_t duration_ns, gpc_devptr address, uint64_t size);

/* Orders later work of `stream` after the work submitted so far to stream `other`. */
GPC_MUST_CHECK enum gpc_status gpc_machine_order(
	struct gpc_machine *machine, uint32_t stream, uint32_t other);

/*
 * Tells the race detector that operation `number` of the trace got the memory.  With `is_of_stream` the new owner uses
 * the memory first on `stream`; otherwise on any stream.
 */
void gpc_machine_own(struct gpc_machine *machine, gpc_devptr address, uint64_t size,
	uint64_t number, bool is_of_stream, uint32_t stream);

/* Tells the race detector that the program is about to free the memory. */
void gpc_machine_disown(struct gpc_machine *machine, gpc_devptr address);

/*
 * Returns false if there was no race.  On true, *ret_n is the number of races, and the other two are the numbers that
 * gpc_machine_own() got for the owners in the first race.
 */
bool gpc_machine_find_race(struct gpc_machine *machine, uint64_t *ret_n, uint64_t *ret_old_owner,
	uint64_t *ret_new_owner);

#endif
