/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of gpucache.h, as called by preload/api.c.
 *
 * Threads   Any.
 * Failure   The driver's codes: CUDA_ERROR_INVALID_DEVICE for a device that does not exist, _INVALID_CONTEXT for device
 *           -1 without a current context, _NOT_SUPPORTED for tags without a recording, _NOT_FOUND for an address outside
 *           the segments, _INVALID_VALUE otherwise.
 */
#ifndef GPC_RUNTIME_PROCESS_API_H
#define GPC_RUNTIME_PROCESS_API_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "gpucache.h"

struct gpc_device;

/* As in gpucache.h.  Device -1: that of the current context. */
CUresult gpc_runtime_trim(int device, size_t bytes, size_t *ret_bytes);
CUresult gpc_runtime_stats(int device, struct gpucache_stats *ret_stats);
CUresult gpc_runtime_reset_peaks(int device);
CUresult gpc_runtime_stream_stats(
	int device, CUstream stream, struct gpucache_part_stats *ret_stats);
CUresult gpc_runtime_tag_stats(int device, const char *name, struct gpucache_part_stats *ret_stats);
CUresult gpc_runtime_snapshot(char *ret_path, size_t size);
CUresult gpc_runtime_set_limit(int device, uint64_t bytes);
CUresult gpc_runtime_set_fraction(int device, double fraction);
void gpc_runtime_set_oom_handler(gpucache_oom_handler handler, void *arg);
CUresult gpc_runtime_segment_of(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_size);

/*
 * Makes the primary context of this device current, unless one of the device's contexts is current.  Pass *ret_must_pop
 * to gpc_runtime_leave_device, which restores the context that was current before.
 */
CUresult gpc_runtime_enter_device(int device, bool *ret_must_pop);
void gpc_runtime_leave_device(bool must_pop);

/* Calls the program's OOM handler.  Returns false if there is none, or if the handler of this thread is running. */
bool gpc_runtime_ask_handler(const struct gpc_device *device, uint64_t wanted, bool *ret_did_free);

#endif
