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
#include "stack/named.h"
#include "why/evidence.h"

struct gpc_device;

/* Between open and close holds the names of the device's call sites. */
struct gpc_holder_names {
	struct gpc_device *device;
	struct gpc_naming *naming; /* NULL: no stacks are taken, or there is no memory */
};

/* `oom`: the failure that the names are for, or NULL. */
struct gpc_holder_names gpc_holder_names_open(
	struct gpc_device *device, const struct gpucache_oom *oom);
void gpc_holder_names_close(struct gpc_holder_names *names);

/* What these return is valid until close. */
struct gpc_describer gpc_holder_describer(struct gpc_holder_names *names);
struct gpc_evidence gpc_holder_evidence(struct gpc_holder_names *names);

/* Logs the largest holders, as parts of `total` bytes. */
void gpc_holders_print(struct gpc_device *device, uint64_t total);

#endif
