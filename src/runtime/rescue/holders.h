/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holders of a device's memory, as the process itself finds them in its recording.
 *
 * Threads   Any; reads the recording's tables without a lock.
 * Failure   A record that is being written may count or not.
 */
#ifndef GPC_RUNTIME_RESCUE_HOLDERS_H
#define GPC_RUNTIME_RESCUE_HOLDERS_H

#include <stdint.h>

#include "oom/holder_rows.h"

struct gpc_device;

/* Returns the describer of a device's holders.  gpc_holders_print logs the largest ones, as parts of `total` bytes. */
struct gpc_describer gpc_holder_describer(struct gpc_device *device);
void gpc_holders_print(struct gpc_device *device, uint64_t total);

#endif
