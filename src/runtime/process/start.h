/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start, at the first CUDA call of the process.
 *
 * Threads   One: whoever won the state (enter.c).
 * Failure   false: everything passes from here on.
 */
#ifndef GPC_RUNTIME_PROCESS_START_H
#define GPC_RUNTIME_PROCESS_START_H

#include <stdbool.h>

/* Configuration, recording, devices. False: pass. */
bool gpc_runtime_start(void);

#endif
