/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process, which closes the recording.
 *
 * Threads   Any.  gpc_runtime_at_exit runs once; after it, the other function changes nothing.
 * Failure   None.  The recording of a process that calls neither function reads as that of a killed process.
 */
#ifndef GPC_RUNTIME_PROCESS_EXIT_H
#define GPC_RUNTIME_PROCESS_EXIT_H

/*
 * At a regular exit: reads the devices once more, reports fatal failures, closes the recording.  Destructors of static
 * objects may still free memory, which the recording shows: the driver has ended then, and refuses.
 */
void gpc_runtime_at_exit(void);

/* After these destructors: reports leaks.  Does nothing unless the other function has run. */
void gpc_runtime_at_last(void);

/*
 * At _exit and quick_exit, which run no handlers: only closes the recording.  Async-signal-safe; does nothing in a
 * child of fork or vfork.
 */
void gpc_runtime_at_exit_without_handlers(void);

#endif
