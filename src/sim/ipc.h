/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that another process opens by handle.
 *
 *      exporter                            importer
 *      allocation <-- its 2 MiB chunks --> addresses without memory, the bytes in the same file
 *                         in a file
 *
 * The first export of an allocation moves the bytes of its chunks into a file without a name; the
 * handle says which file of which process that is.  The importer maps the file behind addresses of
 * its own.  As with the real driver, a pointer into an allocation gives the allocation's handle, and
 * opening a handle again gives the same pointer, which then has to be closed once more.  The memory is
 * in the account of the exporter alone.  Its bytes live until both have released them: an importer keeps
 * them when the exporter frees or dies.
 *
 * Invariants  1 A handle opens at the start of an allocation, or not at all.
 * Threads     Any; one lock, in which the device's may be taken.
 * Failure     INVALID_VALUE: memory that is no allocation of ours, or no handle.  INVALID_CONTEXT:
 *             a handle of this process.  MAP_FAILED: the exporter or its file is gone.
 * Limits      An importer sees the exporter's writes when they are done on the exporter's clock.
 *             The processes are of one user and see each other in /proc.
 */
#ifndef GPC_SIM_IPC_H
#define GPC_SIM_IPC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/stream.h"

CUresult gpc_sim_ipc_export(struct gpc_sim *sim, uint64_t ptr, CUipcMemHandle *ret_handle);
CUresult gpc_sim_ipc_open(struct gpc_sim_context *context, const CUipcMemHandle *handle,
	unsigned flags, uint64_t *ret_ptr);
CUresult gpc_sim_ipc_close(struct gpc_sim *sim, uint64_t ptr);

/* Finds the opened memory that contains `ptr`; false if there is none.  Any output may be NULL. */
bool gpc_sim_ipc_find(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size);

/* Closes all memory that the ending context opened. */
void gpc_sim_ipc_close_all(struct gpc_sim_context *context);

#endif
