/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that read how much of a GPU is free, and give up by themselves: nothing fails in the driver.  What a known one
 * (why/sizers.def) would be told is written when it reads, and said if the process then ends with an error and has asked for
 * no more (notice.h).
 *
 * Threads   Any; the caller holds no lock.
 * Failure   Nothing is said: without stacks, with oom_report:never, beside a failed request.
 * Limits    The first MOST_READS reads of a process (asked.c), because each may name a stack.
 */
#ifndef GPC_RUNTIME_RESCUE_ASKED_H
#define GPC_RUNTIME_RESCUE_ASKED_H

#include <stddef.h>

/* The program reads that so many bytes of the current context's device are free. */
void gpc_asked_note(size_t available, size_t total);

#endif
