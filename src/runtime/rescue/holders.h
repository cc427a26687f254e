/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be said of a device's holders from within the process.
 *
 * Threads   Any; reads the recording's own tables without a lock.
 * Failure   What cannot be read is left out.
 */
#ifndef GPC_RUNTIME_RESCUE_HOLDERS_H
#define GPC_RUNTIME_RESCUE_HOLDERS_H

#include <stdint.h>

#include "oom/holder_rows.h"

struct gpc_device;

/* What can be said of a device's holders; the second prints them, with `total` bytes in all. */
struct gpc_describer gpc_holder_describer(struct gpc_device *device);
void gpc_holders_print(struct gpc_device *device, uint64_t total);

#endif
