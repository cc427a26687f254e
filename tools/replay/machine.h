/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines: the device of one run, with its streams and its work, and a driver that counts.
 *
 *      policy --> machine.driver (counts) --+--> driver_sim    a simulated GPU of any size, a virtual clock
 *                                           '--> driver_cuda   this machine's own, with --gpu
 *
 * Invariants  1 What is reserved is what the device says is gone since the policy began, not what
 *               the policy says of itself.
 *             2 Stream 0 is the legacy default stream, all others are non-blocking.
 *             3 On the simulated GPU calls cost nothing, so its clock moves only where the trace
 *               lets time pass, and where somebody waits for the device.
 * Threads     One.
 * Failure     open: as the driver, GPC_NO_METADATA; GPC_NOT_FOUND: no libcuda, or no such GPU.
 * Limits      A real GPU is given no work.
 */
#ifndef GPC_REPLAY_MACHINE_H
#define GPC_REPLAY_MACHINE_H

#include <stdbool.h>

#include "driver/driver.h"
#include "sim/driver_sim.h"

struct gpc_gpu;

struct gpc_machine_config {
	uint64_t device_bytes; /* the simulated GPU's */
	uint64_t fixed_bytes;  /* of it, that others hold */
	uint32_t n_streams;
	bool has_work; /* the race detector watches */
	bool is_real;
	int gpu; /* which one, where is_real */
};

/* A driver that counts what it passes on. */
struct gpc_counting_driver {
	struct gpc_driver base;
	struct gpc_driver *inner;
	uint64_t n_calls
		[GPC_SIM_COST_COUNT]; /* all but now_ns; an event's end counts as its making */
};

struct gpc_machine {
	struct gpc_driver *driver; /* for policies: the counting one */
	struct gpc_counting_driver counting;
	uint64_t device_bytes;
	uint64_t free_at_start_bytes;
	gpc_stream *streams;
	uint32_t n_streams;
	gpc_event event;     /* for gpc_machine_order */
	gpc_devptr ballast;  /* fixed_bytes of a real GPU */
	struct gpc_sim *sim; /* NULL: a real GPU */
	struct gpc_sim_driver sim_driver;
	struct gpc_gpu *gpu; /* NULL: a simulated one */
};

GPC_MUST_CHECK enum gpc_status gpc_machine_open(
	struct gpc_machine *machine, const struct gpc_machine_config *config);
void gpc_machine_close(struct gpc_machine *machine);

/*
 * cuMemCreate, cuMemMap and cuMemSetAccess of one handle, and cuMemUnmap and cuMemRelease.  They count as memory
 * taken and returned: an H100 takes 43 to 86 us for the three and 33 to 332 for the two (2 to 512 MiB), for
 * cuMemAlloc 64 to 90, for cuMemFree 51 to 317 (tests/gpu/results).  On a simulated GPU only.
 */
GPC_MUST_CHECK enum gpc_status gpc_machine_create_handle(
	struct gpc_machine *machine, uint64_t size);
void gpc_machine_release_handle(struct gpc_machine *machine, uint64_t size);

uint64_t gpc_machine_reserved_bytes(struct gpc_machine *machine);

/* Stores what was submitted to stream number i into the event. */
GPC_MUST_CHECK enum gpc_status gpc_machine_record(
	struct gpc_machine *machine, uint32_t i, gpc_event event);

/* ---- what the program does; nothing of it on a real GPU ---- */

/* Memory is handed out before it is in order, and work is not: see is_late of sim/race.h. */
void gpc_machine_expect_late(struct gpc_machine *machine, bool is_late);

/* The host is busy with something else for so long. */
void gpc_machine_pass_time(struct gpc_machine *machine, uint64_t duration_ns);
GPC_MUST_CHECK enum gpc_status gpc_machine_work(struct gpc_machine *machine, uint32_t stream,
	uint64_t duration_ns, gpc_devptr address, uint64_t size);
GPC_MUST_CHECK enum gpc_status gpc_machine_order(
	struct gpc_machine *machine, uint32_t stream, uint32_t other);
GPC_MUST_CHECK enum gpc_status gpc_machine_sync(struct gpc_machine *machine);

/* The program got memory by its operation `number`, and is about to give it back. */
void gpc_machine_own(struct gpc_machine *machine, gpc_devptr address, uint64_t size,
	uint64_t number, bool is_of_stream, uint32_t stream);
void gpc_machine_disown(struct gpc_machine *machine, gpc_devptr address);

/* False: none; else the first one: the operations whose memory it is. */
bool gpc_machine_find_race(struct gpc_machine *machine, uint64_t *ret_n, uint64_t *ret_old_owner,
	uint64_t *ret_new_owner);

/* ---- machine_gpu.c ---- */

GPC_MUST_CHECK enum gpc_status gpc_gpu_open(
	int ordinal, struct gpc_gpu **ret_gpu, struct gpc_driver **ret_driver);
void gpc_gpu_close(struct gpc_gpu *gpu);
GPC_MUST_CHECK enum gpc_status gpc_gpu_stream_create(struct gpc_gpu *gpu, gpc_stream *ret_stream);
void gpc_gpu_stream_destroy(struct gpc_gpu *gpu, gpc_stream stream);
GPC_MUST_CHECK enum gpc_status gpc_gpu_record(
	struct gpc_gpu *gpu, gpc_stream stream, gpc_event event);

#endif
