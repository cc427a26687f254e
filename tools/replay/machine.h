/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines: the device of one run, with its streams and its work, and a driver that counts calls.
 *
 *      policy --> machine.driver (counts) --+--> driver_sim    a simulated GPU of any size, a virtual clock
 *                                           '--> driver_cuda   the real driver, with --gpu
 *
 * Invariants  1 Reserved bytes are what the device has lost since the policy began, not what the
 *               policy reports.
 *             2 Stream 0 is the legacy default stream, all others are non-blocking.
 *             3 Calls cost no time on the simulated GPU: its clock moves only when the trace passes
 *               time or the host waits for the device.
 * Threads     One.
 * Failure     open: the driver's, GPC_NO_METADATA; GPC_NOT_FOUND: no libcuda, or no such GPU.
 * Limits      A real GPU gets no work.
 */
#ifndef GPC_REPLAY_MACHINE_H
#define GPC_REPLAY_MACHINE_H

#include <stdbool.h>

#include "driver/driver.h"
#include "sim/driver_sim.h"

struct gpc_gpu;

struct gpc_machine_config {
	uint64_t device_bytes; /* of the simulated GPU */
	uint64_t fixed_bytes;  /* of those, held from the start */
	uint32_t n_streams;
	bool has_work; /* the race detector watches */
	bool is_late;  /* for the race detector: is_late of the policy (policy.h) */
	bool is_real;
	int gpu; /* the ordinal, if is_real */
};

/* Counts the calls that it passes to `inner`. */
struct gpc_counting_driver {
	struct gpc_driver base;
	struct gpc_driver *inner;
	/* By kind; destroying an event counts as creating one, and now_ns is not counted. */
	uint64_t n_calls[GPC_SIM_COST_COUNT];
};

struct gpc_machine {
	struct gpc_driver *driver; /* for policies: &counting.base */
	struct gpc_counting_driver counting;
	uint64_t device_bytes;
	uint64_t free_at_start_bytes;
	gpc_stream *streams;
	uint32_t n_streams;
	gpc_event event;     /* for gpc_machine_order */
	gpc_devptr ballast;  /* of a real GPU: an allocation of fixed_bytes */
	struct gpc_sim *sim; /* NULL: a real GPU */
	struct gpc_sim_driver sim_driver;
	struct gpc_gpu *gpu; /* NULL: a simulated one */
};

GPC_MUST_CHECK enum gpc_status gpc_machine_open(
	struct gpc_machine *machine, const struct gpc_machine_config *config);
void gpc_machine_close(struct gpc_machine *machine);

/*
 * Maps one handle (cuMemCreate, cuMemMap, cuMemSetAccess); unmaps it (cuMemUnmap, cuMemRelease).  Counted as one
 * allocation and one free: on an H100 the three take 43 to 86 us and the two 33 to 332 us (2 to 512 MiB), cuMemAlloc 64
 * to 90 us and cuMemFree 51 to 317 us (tests/gpu/results).  Simulated GPU only.
 */
GPC_MUST_CHECK enum gpc_status gpc_machine_create_handle(
	struct gpc_machine *machine, uint64_t size);
void gpc_machine_release_handle(struct gpc_machine *machine, uint64_t size);

uint64_t gpc_machine_reserved_bytes(struct gpc_machine *machine);

/* The smallest device that would have refused nothing so far; of a real GPU its memory. */
uint64_t gpc_machine_peak_bytes(struct gpc_machine *machine);

/* Records the event on stream number i. */
GPC_MUST_CHECK enum gpc_status gpc_machine_record(
	struct gpc_machine *machine, uint32_t i, gpc_event event);

/* ---- what the program does; no effect on a real GPU ---- */

/* Keeps the host busy for `duration_ns`. */
void gpc_machine_pass_time(struct gpc_machine *machine, uint64_t duration_ns);
GPC_MUST_CHECK enum gpc_status gpc_machine_work(struct gpc_machine *machine, uint32_t stream,
	uint64_t duration_ns, gpc_devptr address, uint64_t size);
GPC_MUST_CHECK enum gpc_status gpc_machine_order(
	struct gpc_machine *machine, uint32_t stream, uint32_t other);

/* Tells the race detector that operation `number` got the memory. */
void gpc_machine_own(struct gpc_machine *machine, gpc_devptr address, uint64_t size,
	uint64_t number, bool is_of_stream, uint32_t stream);

/* Tells the race detector that the program is about to free the memory. */
void gpc_machine_disown(struct gpc_machine *machine, gpc_devptr address);

/* Returns false if there was no race; else the number of races, and the two owners in the first one. */
bool gpc_machine_find_race(struct gpc_machine *machine, uint64_t *ret_n, uint64_t *ret_old_owner,
	uint64_t *ret_new_owner);

#endif
