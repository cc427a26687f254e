/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: all operations of a device that the allocator may use.
 *
 * A struct gpc_driver stands for one context on one device.  There are two implementations: driver_cuda.c calls
 * libcuda, and sim/gpu/driver_sim.c calls a simulated GPU.  tests/conformance runs the same tests against both.
 *
 *            alloc ----> struct gpc_driver_ops ----+---- driver_cuda   (libcuda.so.1)
 *                                                  '---- driver_sim    (src/sim/gpu)
 *
 * fence_record records in an event all work that was submitted to the context before the call, on every stream.  The
 * event has *passed* once that work has completed.  The driver also reports an event as passed that was never recorded,
 * so the caller queries no event whose last record failed.
 *
 * Invariants  1 The caller of an op that is not marked [quick] holds no lock of ours except the capture lock and a
 *               device's primary-context lock (docs/ARCHITECTURE.md, "Global invariants").
 *             2 An op marked [breaks captures] may invalidate a stream capture of the program, so its caller keeps it
 *               apart from captures (alloc/captures.h).  No other op invalidates one.
 *             3 No op changes the current context that the program sees.
 * Threads     Any.
 * Failure     GPC_UNSUPPORTED if the driver lacks the function, GPC_DEVICE_NOT_READY, GPC_DEVICE_NO_MEMORY, or the
 *             driver's own code (base/status.h).  Outputs are written on GPC_OK only.
 */
#ifndef GPC_DRIVER_DRIVER_H
#define GPC_DRIVER_DRIVER_H

#include <stdint.h>

#include "base/status.h"

/* A device address; not a C pointer, so that it cannot be dereferenced by mistake. */
typedef uint64_t gpc_devptr;

/* The driver's handles.  Stream 0 is the legacy default stream; event 0 is none. */
typedef uint64_t gpc_stream;
typedef uint64_t gpc_event;

struct gpc_driver;

struct gpc_driver_ops {
	/* The time in nanoseconds, by which decay and waits are measured.              [quick] */
	uint64_t (*now_ns)(struct gpc_driver *drv);

	/*
	 * Allocates exactly `size` bytes of device memory, size > 0.                   [may block]
	 * GPC_DEVICE_NO_MEMORY: there is no room now; after a mem_free there may be.
	 */
	enum gpc_status (*mem_alloc)(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr);

	/* Frees memory of mem_alloc.  May wait for the whole device.              [may block] */
	enum gpc_status (*mem_free)(struct gpc_driver *drv, gpc_devptr ptr);

	/*
	 * mem_free_beside frees memory of mem_alloc that no work uses any more, beside work of the context that runs:
	 * it waits only for what fence_wait makes all later work wait for.  Call prepare_beside before the first time.
	 * If either fails, the driver cannot do that now.
	 */
	enum gpc_status (*prepare_beside)(struct gpc_driver *drv);
	enum gpc_status (*mem_free_beside)(struct gpc_driver *drv, gpc_devptr ptr);

	/* Free and total bytes of the device.                                     [may block] */
	enum gpc_status (*mem_info)(
		struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total);

	/* Creates an event without timing, and destroys it.                            [quick] */
	enum gpc_status (*event_create)(struct gpc_driver *drv, gpc_event *ret_event);
	void (*event_destroy)(struct gpc_driver *drv, gpc_event event);

	/*
	 * Records in `event` all work submitted to the context so far.  [quick] [breaks captures]
	 * GPC_UNSUPPORTED: the driver is older than 12.5; call context_sync instead.
	 */
	enum gpc_status (*fence_record)(struct gpc_driver *drv, gpc_event event);

	/*
	 * Makes all later work of the context wait for `event`, on the device.
	 * GPC_UNSUPPORTED: as fence_record.                             [quick] [breaks captures]
	 */
	enum gpc_status (*fence_wait)(struct gpc_driver *drv, gpc_event event);

	/*
	 * GPC_OK: passed.  GPC_DEVICE_NOT_READY: not yet.  Other: the context is broken.        [quick]
	 */
	enum gpc_status (*event_query)(struct gpc_driver *drv, gpc_event event);

	/* Waits on the host until the event has passed.                           [may block] */
	enum gpc_status (*event_wait)(struct gpc_driver *drv, gpc_event event);

	/* Waits on the host for all work of the context.     [may block] [breaks captures] */
	enum gpc_status (*context_sync)(struct gpc_driver *drv);

	/*
	 * Records in `event` all work submitted so far to the legacy default stream.  Breaks only captures of streams
	 * that synchronize with the legacy stream; while the one-stream rule holds, there are none.
	 *                                                               [quick] [breaks captures]
	 */
	enum gpc_status (*legacy_record)(struct gpc_driver *drv, gpc_event event);

	/* Makes all later work of `stream` wait for `event`, on the device.   [quick] */
	enum gpc_status (*stream_wait)(struct gpc_driver *drv, gpc_stream stream, gpc_event event);
};

/* The initializer of a struct gpc_driver_ops from functions with the names of its members. */
#define GPC_DRIVER_OPS                                                                          \
	{                                                                                       \
		.now_ns = now_ns, .mem_alloc = mem_alloc, .mem_free = mem_free,                 \
		.prepare_beside = prepare_beside, .mem_free_beside = mem_free_beside,           \
		.mem_info = mem_info, .event_create = event_create,                             \
		.event_destroy = event_destroy, .fence_record = fence_record,                   \
		.fence_wait = fence_wait, .event_query = event_query, .event_wait = event_wait, \
		.context_sync = context_sync, .legacy_record = legacy_record,                   \
		.stream_wait = stream_wait,                                                     \
	}

struct gpc_page_ops;

/* The base of every driver, embedded as its first member. */
struct gpc_driver {
	const struct gpc_driver_ops *ops;
	const struct gpc_page_ops *pages; /* driver_pages.h; NULL: this context uses none */
};

#endif
