/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that failed: the ladder; and where that did not help, the record, the verdict and the words.
 *
 * Threads   Any; no lock may be held.
 * Failure   The status of the last attempt.
 */
#ifndef GPC_RUNTIME_RESCUE_RESCUE_H
#define GPC_RUNTIME_RESCUE_RESCUE_H

#include "oom/neighbours.h"
#include "runtime/process/state.h"

/*
 * A call ran out of memory, and nobody knows of how much: everything idle of the current device
 * goes back.  False: there is nothing that could be tried.
 */
bool gpc_runtime_make_room(void);

/*
 * A request that failed with `st`: what the ladder can do.  GPC_OK: `attempt` succeeded in the
 * end.
 */
struct gpc_rescue {
	struct gpc_context *context;
	enum gpucache_kind kind;
	uint64_t size;
	uint64_t rounded;
	struct gpc_request request;
	enum gpc_status (*attempt)(void *arg);
	void *arg;
};
GPC_MUST_CHECK enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st);

/* PyTorch refused a tensor and asked nobody: it keeps to a limit of its own. */
void gpc_rescue_torch_limit(struct gpc_device *device, uint64_t size);

/* PyTorch gave up behind the OOM of that number, as it says in `torch`. */
void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch);

/* Behind the function below: the failure on this device was recovered. */
void gpc_rescue_recovered(struct gpc_device *device);

/*
 * A request of this size succeeded: earlier failures up to it of memory of the same place were recovered
 * by the program.
 */
static inline void gpc_rescue_succeeded(struct gpc_device *device, uint8_t kind, uint64_t size)
{
	uint64_t failed = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE);
	bool on_host = gpucache_kind_place(kind) == GPUCACHE_ON_HOST;

	if (__builtin_expect(failed != 0 && size >= failed, 0) &&
		on_host == __atomic_load_n(&device->failed_on_host, __ATOMIC_RELAXED))
		gpc_rescue_recovered(device);
}

/* Asks NVML, which is loaded at the first need; unknown where another thread is asking. */
bool gpc_runtime_ask_neighbours(
	const struct gpc_device *device, struct gpc_neighbours *ret_neighbours);

/* The process ends: print what was fatal. */
void gpc_rescue_at_exit(void);

#endif
