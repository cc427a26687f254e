/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that another process opens by handle.
 *
 *      exporter                            importer
 *      allocation <-- its 2 MiB chunks --> addresses without memory; their bytes are those of the file
 *                         in a file
 *
 * The first export of an allocation moves the bytes of its chunks into a memfd; the handle names the process and the
 * descriptor.  The importer maps the file at addresses of its own.  As with the real driver, any address in an
 * allocation exports the allocation.  To open a handle again returns the same pointer, which must then be
 * closed once more.  Only the exporter's device counts the memory as used.  The bytes live until exporter and importer
 * have both released them: the importer keeps them if the exporter frees the memory or dies.
 *
 * Invariants  1 A handle opens at the start of an allocation, or not at all.
 * Threads     Any; one lock, taken before the device's.
 * Failure     INVALID_VALUE: no allocation at that address, or not a handle.  INVALID_CONTEXT: a handle of this
 *             process, or one that another context has open.  MAP_FAILED: the exporter or its file is gone.
 * Limits      An importer sees the exporter's writes when they are done on the exporter's clock.
 *             Both processes run as one user and see each other in /proc.
 */
#ifndef GPC_SIM_IPC_H
#define GPC_SIM_IPC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/gpu/execution/stream.h"

CUresult gpc_sim_ipc_export(struct gpc_sim *sim, uint64_t ptr, CUipcMemHandle *ret_handle);
CUresult gpc_sim_ipc_open(struct gpc_sim_context *context, const CUipcMemHandle *handle,
	unsigned flags, uint64_t *ret_ptr);
CUresult gpc_sim_ipc_close(struct gpc_sim *sim, uint64_t ptr);

/* Finds the opened memory that contains `ptr`; false if there is none.  Any output may be NULL. */
bool gpc_sim_ipc_find(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size);

/* Closes all memory that the ending context opened. */
void gpc_sim_ipc_close_all(struct gpc_sim_context *context);

#endif
