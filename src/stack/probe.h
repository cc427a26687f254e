/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory that may be unmapped, through a pipe: write(2) from unmapped memory returns EFAULT, where a load would
 * kill the process.  Sandboxes that forbid process_vm_readv allow pipes, and a pipe needs no signal handler.
 *
 * Threads   An object belongs to one thread.
 * Failure   False: the memory is not readable, or there is no pipe.
 * Limits    A read takes about a microsecond, so python.c uses it only in a trial.
 */
#ifndef GPC_STACK_PROBE_H
#define GPC_STACK_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest read, in bytes: a pipe takes this many in one piece. */
#define GPC_PROBE_MAX 4096u

struct gpc_probe {
	int ends[2];
};

/* False: no descriptors left. */
bool gpc_probe_init(struct gpc_probe *probe);
void gpc_probe_fini(struct gpc_probe *probe);

/* Copies size <= GPC_PROBE_MAX bytes from `address`.  On failure *ret_data may be partly written. */
bool gpc_probe_read(const struct gpc_probe *probe, uintptr_t address, void *ret_data, size_t size);

#endif
