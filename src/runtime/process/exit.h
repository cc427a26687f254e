/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process: says why, and closes the recording.
 *
 *      exit, return from main      is_ending, at_exit ... at_last
 *      _exit, _Exit, quick_exit    is_ending, at_exit_without_handlers
 *      abort, terminate, assert    is_ending
 *
 * Threads   Any, also several at once.  at_exit runs once; after it, at_exit_without_handlers changes nothing.
 * Failure   None.  The recording of a process that calls none of them, or only is_ending, reads as that of a killed
 *           process.
 */
#ifndef GPC_RUNTIME_PROCESS_EXIT_H
#define GPC_RUNTIME_PROCESS_EXIT_H

/*
 * The process ends with this status; an abort has one, too.  Unless it is 0, prints what was prepared about failures from
 * which the program has not recovered: once, however often and in whatever thread it is called.  Async-signal-safe; does
 * nothing in a child of fork or vfork.
 */
void gpc_runtime_is_ending(int status);

/*
 * At a regular exit, for on_exit: as is_ending, reads the devices once more, closes the recording.  Destructors of static
 * objects may still free memory, which the recording shows: the driver has ended then, and refuses.
 */
void gpc_runtime_at_exit(int status, void *arg);

/* After these destructors: reports leaks.  Does nothing unless at_exit has run. */
void gpc_runtime_at_last(void);

/*
 * At _exit and quick_exit, which run no handlers: only closes the recording.  Async-signal-safe; does nothing in a
 * child of fork or vfork.
 */
void gpc_runtime_at_exit_without_handlers(void);

#endif
