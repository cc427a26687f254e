/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a program, told from what is live: each takes memory for its work, and gives it back.
 *
 *      live |      /\    /\    /\        high: 3/4 of the way from the floor to the peak
 *           |     /  \  /  \  /  \       low:  1/4 of it
 *           |____/    \/    \/    \__    a step is a rise from below low to above high
 *
 * Threads     One.
 * Failure     None.
 * Limits      Each micro-batch of an accumulated step is one.  Steps that hold less than 1/16 of the peak beyond the floor
 *             are not told apart: 1.
 */
#ifndef GPC_REPLAY_STEPS_H
#define GPC_REPLAY_STEPS_H

#include "tools/replay/trace.h"

struct gpc_steps {
	uint64_t n;       /* that were begun; 0: nothing was live */
	uint64_t n_peak;  /* the one in which the peak was */
	uint64_t peak_op; /* the operation that made it */
};

struct gpc_steps gpc_steps_count(const struct gpc_trace *trace);

#endif
