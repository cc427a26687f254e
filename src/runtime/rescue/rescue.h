/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed request: climbs the ladder, and if that fails, writes the record, the verdict and the short form.
 *
 * Threads   Any; no lock may be held.
 * Failure   The status of the last attempt.
 */
#ifndef GPC_RUNTIME_RESCUE_RESCUE_H
#define GPC_RUNTIME_RESCUE_RESCUE_H

#include "oom/neighbours.h"
#include "runtime/process/state.h"

/*
 * For a call of unknown size that ran out of memory: waits for pending memory, without a bound, and trims
 * everything idle on the current device.  False: no current context.
 */
bool gpc_runtime_make_room(void);

/*
 * A failed request.  gpc_rescue_run takes the error of the first attempt, climbs the ladder, and calls `attempt` after
 * each rung.  Returns GPC_OK once an attempt succeeded.
 */
struct gpc_rescue {
	struct gpc_context *context;
	enum gpucache_kind kind;
	uint64_t size;    /* bytes requested */
	uint64_t rounded; /* bytes needed: the size class */
	struct gpc_request request;
	enum gpc_status (*attempt)(struct gpc_rescue *rescue);
	void *arg; /* of `attempt` */
};
GPC_MUST_CHECK enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st);

/* PyTorch refused a tensor without calling the driver, because of its own limit. */
void gpc_rescue_torch_limit(struct gpc_device *device, uint64_t size);

/* PyTorch reported failure after OOM `number`, with the sums in `torch`. */
void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch);

/* Slow path of gpc_rescue_succeeded. */
void gpc_rescue_recovered(struct gpc_device *device, uint64_t size);

/*
 * Call after a request succeeded: marks an earlier failure of at most this size, in the same memory (host or
 * device), as recovered by the program.
 */
static inline void gpc_rescue_succeeded(struct gpc_device *device, uint8_t kind, uint64_t size)
{
	uint64_t failed = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE);
	bool on_host = gpucache_kind_place(kind) == GPUCACHE_ON_HOST;

	if (__builtin_expect(failed != 0 && size >= failed, 0) &&
		on_host == __atomic_load_n(&device->failed_on_host, __ATOMIC_RELAXED))
		gpc_rescue_recovered(device, size);
}

/* Queries NVML, loaded at first use.  False, and all unknown, while another thread is querying. */
bool gpc_runtime_ask_neighbours(
	const struct gpc_device *device, struct gpc_neighbours *ret_neighbours);

/* Prints the failures that the end of the process makes fatal: at most one per device. */
void gpc_rescue_at_exit(void);

#endif
