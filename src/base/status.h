/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes.
 *
 * Values below GPC_DEVICE_FIRST are ours (status.def); a value above it is GPC_DEVICE_FIRST plus a code of the driver.
 * A layer returns driver errors that it cannot handle, and the hook returns the driver's own code to the program.
 */
#ifndef GPC_BASE_STATUS_H
#define GPC_BASE_STATUS_H

#define GPC_MUST_CHECK __attribute__((warn_unused_result))

enum gpc_status {
#define STATUS(name, text) GPC_##name,
#include "base/status.def"
	GPC_STATUS_COUNT,
	GPC_DEVICE_FIRST = 0x10000,
	GPC_DEVICE_NO_MEMORY = GPC_DEVICE_FIRST + 2,   /* CUDA_ERROR_OUT_OF_MEMORY */
	GPC_DEVICE_NOT_READY = GPC_DEVICE_FIRST + 600, /* CUDA_ERROR_NOT_READY */
	GPC_DEVICE_LAST = 0x1ffff,
};

/* The status that carries the driver's code `code`; 0 is GPC_OK. */
static inline enum gpc_status gpc_status_from_device(int code)
{
	return code ? (enum gpc_status)(GPC_DEVICE_FIRST + code) : GPC_OK;
}

/* The driver's code in `st`, or 0 if it has none. */
static inline int gpc_status_to_device(enum gpc_status st)
{
	return st > GPC_DEVICE_FIRST ? (int)st - GPC_DEVICE_FIRST : 0;
}

/* A text for this status: a static string, never NULL. */
const char *gpc_status_text(enum gpc_status st);

#endif
