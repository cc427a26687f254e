/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start, at the first CUDA call of the process.
 *
 * Threads   One, chosen by enter.c.
 * Failure   false: the library passes every call to the driver from now on.
 */
#ifndef GPC_RUNTIME_PROCESS_START_H
#define GPC_RUNTIME_PROCESS_START_H

#include <stdbool.h>

/* Sets up configuration, recording and devices. */
bool gpc_runtime_start(void);

#endif
