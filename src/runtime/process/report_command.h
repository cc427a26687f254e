/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user types to run gpumem-report: its name if a folder of PATH has it, else the path of the one that was built or
 * installed with this library, else its name all the same.
 *
 * Threads   Any; reads the environment (base/env.h).
 * Failure   None.
 */
#ifndef GPC_RUNTIME_PROCESS_REPORT_COMMAND_H
#define GPC_RUNTIME_PROCESS_REPORT_COMMAND_H

#include <stddef.h>

#define GPC_REPORT_COMMAND_SIZE 128

void gpc_report_command_find(char *buf, size_t size);

#endif
