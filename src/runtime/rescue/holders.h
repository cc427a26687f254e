/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holders of a device, as known within the process.
 *
 * Threads   Any; reads the recording's tables without a lock.
 * Failure   Unreadable records are left out.
 */
#ifndef GPC_RUNTIME_RESCUE_HOLDERS_H
#define GPC_RUNTIME_RESCUE_HOLDERS_H

#include <stdint.h>

#include "oom/holder_rows.h"

struct gpc_device;

/* Describes the holders of a device; the second prints them, with `total` bytes in all. */
struct gpc_describer gpc_holder_describer(struct gpc_device *device);
void gpc_holders_print(struct gpc_device *device, uint64_t total);

#endif
