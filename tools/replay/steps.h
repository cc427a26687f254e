/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the steps of a program, such as a training, by its live bytes.  A step allocates memory for its work and frees
 * it, so the live bytes rise and fall once.
 *
 *      live |      /\    /\    /\        high: 3/4 of the way from the floor to the peak
 *           |     /  \  /  \  /  \       low:  1/4 of it
 *           |____/    \/    \/    \__    a rise from below low to above high begins a step
 *
 * Growth is what the least live bytes rise by from quarter to quarter, at least twice: of the operations since half of the
 * peak was live, and up to the last at 15/16 of it: neither a start, nor the state that an optimizer makes in its first step,
 * nor an end counts.
 *
 * Threads     One.
 * Failure     None.
 * Limits      If a step accumulates gradients over micro-batches, each of those counts as a step.  If the floor is
 *             above 15/16 of the peak, the count is 1.
 */
#ifndef GPC_REPLAY_STEPS_H
#define GPC_REPLAY_STEPS_H

#include "tools/replay/trace.h"

struct gpc_steps {
	uint64_t n;       /* steps that began; 0: nothing was ever live */
	uint64_t n_peak;  /* the number of the step with the peak of live bytes; the first is 1 */
	uint64_t peak_op; /* the index of the operation that reached the peak */
	uint64_t growth;  /* bytes a quarter, if that is 1/64 of the peak or more; 0: none */
};

struct gpc_steps gpc_steps_count(const struct gpc_trace *trace);

/* The steps before its largest rise, if they are more: beside a step far larger than the others, those are none. */
uint64_t gpc_steps_before_spike(const struct gpc_trace *trace);

#endif
