/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's contract (src/driver/driver.h) as questions to any struct gpc_driver.
 *
 * The same suite runs on driver_sim, on driver_cuda over src/sim/libcuda, and on driver_cuda over a real GPU.
 * It uses only the ops, about 100 MiB of device memory, and no time of its own; it leaves nothing behind.
 *
 * Threads   One caller at a time; the suite starts threads of its own.
 * Failure   A line "not ok ..." per wrong answer, with the line of the source.
 * Limits    Cannot launch work, so it shows that a fence passes, not that it waits; the unit tests of driver_sim do
 *           that.
 */
#ifndef GPC_TESTS_CONFORMANCE_H
#define GPC_TESTS_CONFORMANCE_H

#include "driver/driver.h"

/* Prints a TAP-like line per question, headed by `name`.  Returns the number of wrong answers. */
int gpc_conformance_run(struct gpc_driver *drv, const char *name);

#endif
