/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds the recording: every block, segment, allocation and reading of the device.
 *
 * Threads   Any.  gpc_observe_device and _now call the driver and take the runtime's lock: the caller holds no lock.
 *           The caller of the other functions may hold the lock of a pool or of tensors.c.
 * Failure   None: a record without room is counted as dropped.
 */
#ifndef GPC_RUNTIME_LEDGER_OBSERVE_H
#define GPC_RUNTIME_LEDGER_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"
#include "model/share.h"

struct gpc_context;
struct gpc_device;

/* The observer of the heap.  observe_hot.h has the functions for a single allocation or free. */
extern const struct gpc_observer gpc_runtime_observer;

/* Records an event of the context.  `what` is 1: seen for the first time; 2: ended. */
void gpc_observe_context(const struct gpc_context *context, uint32_t what);

/* Asks the driver for the device's free memory and records the answer; rate-limited unless `must`. */
void gpc_observe_device(struct gpc_context *context, bool must);

/* Records what is held now as the peak, unless more was held before: else peaks are recorded in steps. */
void gpc_observe_peak(struct gpc_device *device);

/* As gpc_observe_device with `must`, and adds a point to the history. */
void gpc_observe_now(struct gpc_context *context);

#endif
