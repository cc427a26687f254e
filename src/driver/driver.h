/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: all that the allocator may ask of a device.
 *
 * A struct gpc_driver speaks for one context on one device.  There are two: driver_cuda.c over the
 * real entry points of libcuda, and sim/driver_sim.c over a GPU in memory.  tests/conformance runs
 * the same questions against both.
 *
 *            alloc ----> struct gpc_driver_ops ----+---- driver_cuda   (libcuda.so.1)
 *                                                  '---- driver_sim    (src/sim)
 *
 * Events are the memory of "everything submitted so far".  fence_record stores into an event all
 * work that was submitted to the context before the call, on every stream; the event has *passed*
 * once that work is done.  An event that was never recorded would be reported as passed: nobody may
 * query one whose last record did not succeed.
 *
 * Invariants  1 No op is called with a lock of ours held, except those marked [quick].
 *             2 No op invalidates a stream capture of the program, except where marked [breaks
 *               captures]; the caller keeps those apart from captures.
 *             3 No op changes the calling thread's current context as the program sees it.
 * Threads     Every op may be called by any thread at any time.
 * Failure     GPC_OK, GPC_UNSUPPORTED where the driver has no such thing, GPC_DEVICE_NOT_READY,
 *             GPC_DEVICE_NO_MEMORY, or the driver's own code (base/status.h).  Outputs are written
 *             on GPC_OK only.
 */
#ifndef GPC_DRIVER_DRIVER_H
#define GPC_DRIVER_DRIVER_H

#include <stdint.h>

#include "base/status.h"

/* A device address.  Never a C pointer: it cannot be dereferenced by mistake. */
typedef uint64_t gpc_devptr;

/* A stream or an event, as the driver names it; 0 is the legacy default stream, or no event. */
typedef uint64_t gpc_stream;
typedef uint64_t gpc_event;

struct gpc_driver;

struct gpc_driver_ops {
	/*
	 * The clock that decay and waits are measured by, in nanoseconds.              [quick]
	 */
	uint64_t (*now_ns)(struct gpc_driver *drv);

	/*
	 * Give device memory of exactly `size` bytes, size > 0.                         [may block]
	 *
	 * GPC_OK                *ret_ptr is the start of memory that nobody else has
	 * GPC_DEVICE_NO_MEMORY  no such room now; worth another try after a mem_free
	 */
	enum gpc_status (*mem_alloc)(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr);

	/*
	 * Take back what mem_alloc gave.  May wait for the whole device.               [may
	 * block]
	 */
	enum gpc_status (*mem_free)(struct gpc_driver *drv, gpc_devptr ptr);

	/*
	 * Bytes free on the device for anybody, and its total.                         [may
	 * block]
	 */
	enum gpc_status (*mem_info)(
		struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total);

	/* An event without timing, and its end.                                        [quick] */
	enum gpc_status (*event_create)(struct gpc_driver *drv, gpc_event *ret_event);
	void (*event_destroy)(struct gpc_driver *drv, gpc_event event);

	/*
	 * Store in `event` all work of the context submitted so far.    [quick] [breaks captures]
	 * GPC_UNSUPPORTED: the driver is older than 12.5; use context_sync.
	 */
	enum gpc_status (*fence_record)(struct gpc_driver *drv, gpc_event event);

	/*
	 * Make all later work of the context wait for `event`, on the device.
	 * GPC_UNSUPPORTED: as fence_record.                             [quick] [breaks captures]
	 */
	enum gpc_status (*fence_wait)(struct gpc_driver *drv, gpc_event event);

	/* GPC_OK: passed.  GPC_DEVICE_NOT_READY: not yet.  Other: the context is broken. [quick] */
	enum gpc_status (*event_query)(struct gpc_driver *drv, gpc_event event);

	/*
	 * Wait on the host until the event has passed.                                 [may
	 * block]
	 */
	enum gpc_status (*event_wait)(struct gpc_driver *drv, gpc_event event);

	/* Wait on the host for all work of the context.      [may block] [breaks captures] */
	enum gpc_status (*context_sync)(struct gpc_driver *drv);

	/*
	 * Store in `event` all work submitted so far to the legacy default stream.      [quick]
	 * Make all later work of `stream` wait for `event`, on the device.              [quick]
	 */
	enum gpc_status (*legacy_record)(struct gpc_driver *drv, gpc_event event);
	enum gpc_status (*stream_wait)(struct gpc_driver *drv, gpc_stream stream, gpc_event event);
};

/* Ops that are functions of the same names. */
#define GPC_DRIVER_OPS                                                                          \
	{                                                                                       \
		.now_ns = now_ns, .mem_alloc = mem_alloc, .mem_free = mem_free,                 \
		.mem_info = mem_info, .event_create = event_create,                             \
		.event_destroy = event_destroy, .fence_record = fence_record,                   \
		.fence_wait = fence_wait, .event_query = event_query, .event_wait = event_wait, \
		.context_sync = context_sync, .legacy_record = legacy_record,                   \
		.stream_wait = stream_wait,                                                     \
	}

/*
 * The part that every driver starts with; a driver embeds it as its first member.
 */
struct gpc_driver {
	const struct gpc_driver_ops *ops;
};

#endif
