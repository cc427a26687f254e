/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the steps of a program by its live bytes: each step allocates memory for its work and frees it.
 *
 *      live |      /\    /\    /\        high: 3/4 of the way from the floor to the peak
 *           |     /  \  /  \  /  \       low:  1/4 of it
 *           |____/    \/    \/    \__    a step is a rise from below low to above high
 *
 * Threads     One.
 * Failure     None.
 * Limits      Each micro-batch of an accumulated step counts as a step.  If steps hold less than 1/16 of the peak above
 *             the floor, the count is 1.
 */
#ifndef GPC_REPLAY_STEPS_H
#define GPC_REPLAY_STEPS_H

#include "tools/replay/trace.h"

struct gpc_steps {
	uint64_t n;       /* begun; 0: nothing was ever live */
	uint64_t n_peak;  /* the step with the peak */
	uint64_t peak_op; /* the operation that reached it */
};

struct gpc_steps gpc_steps_count(const struct gpc_trace *trace);

#endif
