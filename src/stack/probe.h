/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of memory that may be unmapped: through a pipe, whose write(2) returns EFAULT instead of killing
 * the process.  Sandboxes that forbid process_vm_readv allow that, and it needs no signal handler.
 *
 * Threads   An object belongs to one thread.
 * Failure   False: not readable, or no pipe.
 * Limits    About a microsecond per read: for verification only.
 */
#ifndef GPC_STACK_PROBE_H
#define GPC_STACK_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest read: what a pipe takes in one piece. */
#define GPC_PROBE_MAX 4096u

struct gpc_probe {
	int ends[2];
};

/* False: no descriptors left. */
bool gpc_probe_init(struct gpc_probe *probe);
void gpc_probe_fini(struct gpc_probe *probe);

/* Copies size <= GPC_PROBE_MAX bytes from `address`. */
bool gpc_probe_read(const struct gpc_probe *probe, uintptr_t address, void *ret_data, size_t size);

#endif
