/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process: the last look at the devices, what leaked, what was fatal, the end of the recording.
 *
 * Threads   Any; the handler runs once.
 * Failure   None: a recording that is not ended reads as that of a killed process.
 */
#ifndef GPC_RUNTIME_PROCESS_EXIT_H
#define GPC_RUNTIME_PROCESS_EXIT_H

/*
 * The process ends and no handler will run.  Takes no lock, so that it may be called in a signal
 * handler; does nothing in a child of fork or vfork.
 */
void gpc_runtime_at_exit_without_handlers(void);

/* exit.c */
void gpc_runtime_at_exit(void);

#endif
