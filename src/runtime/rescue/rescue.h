/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed request: climbs the ladder.  If that does not help, records the failure and its verdict, and prepares what the
 * process prints about it.
 *
 * Threads   Any; the caller holds no lock.
 * Failure   The status of the last attempt.
 */
#ifndef GPC_RUNTIME_RESCUE_RESCUE_H
#define GPC_RUNTIME_RESCUE_RESCUE_H

#include "runtime/process/state.h"

/*
 * Call after the driver's call for memory of unknown size failed, and then repeat that call.  Waits, without a bound,
 * for pending memory, and returns all idle memory of the current device to the driver.  False: no context is current.
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
	uint64_t
		free_before; /* set by gpc_rescue_run: free on the device before the ladder; or GPUCACHE_UNKNOWN */
	struct gpc_request request;
	uint32_t pool; /* of the driver, as in struct gpc_passed_call; 0: none */
	enum gpc_status (*attempt)(struct gpc_rescue *rescue);
	void *arg;      /* of `attempt` */
	bool may_spill; /* set by gpc_rescue_run on the last rung */
	uint64_t
		spilled; /* 0, or the request was served by this address, which is in the ledger (spill.h) */
};
GPC_MUST_CHECK enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st);

/*
 * Call after a request failed for which no ladder is climbed: PyTorch refused a tensor because of its own limit, or the
 * driver a size that no device has.  context NULL: no-op.
 */
void gpc_rescue_refused(
	struct gpc_context *context, enum gpucache_kind kind, uint64_t size, enum gpc_status st);

/* Call after PyTorch reported a failure whose cause is OOM `number`; adds PyTorch's sums `torch` to its record. */
void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch);

/* Slow path of gpc_rescue_succeeded. */
void gpc_rescue_recovered(struct gpc_device *device, uint64_t size);

/*
 * Call after a request succeeded.  If an earlier request of at most this size of the same thread failed in the same
 * memory (host or device), the program has recovered from that failure.
 */
static inline void gpc_rescue_succeeded(struct gpc_device *device, uint8_t kind, uint64_t size)
{
	uint64_t failed = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE);
	bool on_host = gpucache_kind_place(kind) == GPUCACHE_ON_HOST;

	if (__builtin_expect(failed != 0 && size >= failed, 0) &&
		on_host == __atomic_load_n(&device->failed_on_host, __ATOMIC_RELAXED))
		gpc_rescue_recovered(device, size);
}

#endif
