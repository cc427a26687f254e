/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of our own, for what needs more stack than a thread of the program may have left.
 *
 * A thread of 16 KiB calls us, and so does a coroutine; how much of its stack is left cannot be asked cheaply.  What loads
 * libraries, reads files or explains a failure therefore runs on pages of ours: the calling thread continues there, with
 * its own thread-local data, and returns to its own stack.  Unwinders and debuggers see one chain of frames.
 *
 *      program's stack   main < solve < cudaMalloc < gpc_own_stack_run
 *      own stack                                     ^ function < what it calls
 *
 * Invariants  1 No handler of the program runs on our pages: all signals are blocked meanwhile.  A collector that stops
 *               threads by a signal, and scans their stacks, never sees one of them there.
 *             2 One stack stays mapped for later calls; others exist only while several threads need one.
 * Threads     Any, also at once.
 * Failure     If no pages can be mapped, and on processors without a switch, the function runs on the caller's stack.  So
 *             does a call inside a call.
 * Limits      GPC_OWN_STACK_BYTES, with a guard page below.
 */
#ifndef GPC_BASE_OWN_STACK_H
#define GPC_BASE_OWN_STACK_H

#define GPC_OWN_STACK_BYTES (256u << 10)

/* Calls function(arg), and returns after it. */
void gpc_own_stack_run(void (*function)(void *arg), void *arg);

#endif
