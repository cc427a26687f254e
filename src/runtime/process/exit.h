/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process: reads the devices once more, reports leaks and fatal failures, closes the recording.
 *
 * Threads   Any; the handler runs once.
 * Failure   None: an unclosed recording reads as that of a killed process.
 */
#ifndef GPC_RUNTIME_PROCESS_EXIT_H
#define GPC_RUNTIME_PROCESS_EXIT_H

/*
 * For _exit and quick_exit, which run no handlers.  Async-signal-safe; no-op in a child of fork or vfork.
 */
void gpc_runtime_at_exit_without_handlers(void);

/* For a regular exit. */
void gpc_runtime_at_exit(void);

#endif
