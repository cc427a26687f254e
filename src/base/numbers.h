/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of events that were set aside: a run of them, taken at once, for what will happen to one
 * block.  Threads that each hit a block of their own would else meet at every single number.
 *
 * Within a run numbers are of one block, so its events are in order; those of other blocks in
 * between may have higher numbers and earlier times, but by no more than a run lasts.
 *
 * Threads   One at a time: the holder of the lock of whatever the block is lent by.
 */
#ifndef GPC_BASE_NUMBERS_H
#define GPC_BASE_NUMBERS_H

#include <stdint.h>

struct gpc_numbers {
	uint64_t next;
	uint64_t end;
	uint64_t until_ns; /* then the rest is left unused */
	uint64_t n_used;   /* so far: runs grow with it */
};

#endif
