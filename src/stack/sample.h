/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which small requests get a stack under stacks:sampled: each byte with the same probability.
 *
 * A request of n < GPC_SAMPLE_BYTES bytes is taken with probability n / GPC_SAMPLE_BYTES, whatever
 * came before it, and then stands for GPC_SAMPLE_BYTES bytes (gpc_share_of): the expected sum
 * of every site is what it asked for.  After N bytes of one site the standard deviation is below
 * sqrt(N * GPC_SAMPLE_BYTES): 10 % at 100 MiB.  Taking every n-th MiB instead would be blind to one
 * side of a program whose requests alternate.
 *
 * Threads     A sampler belongs to one thread.
 */
#ifndef GPC_STACK_SAMPLE_H
#define GPC_STACK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define GPC_SAMPLE_BYTES GPC_MIB

struct gpc_sampler {
	uint64_t state; /* any number; threads with different ones go different ways */
};

/* splitmix64: one addition a step, then mixed, so that no state is a bad one. */
static inline uint64_t gpc_sampler_next(struct gpc_sampler *sampler)
{
	uint64_t x = sampler->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* True where a request of `size` bytes gets a stack. */
static inline bool gpc_sampler_takes(struct gpc_sampler *sampler, uint64_t size)
{
	return size >= GPC_SAMPLE_BYTES || gpc_sampler_next(sampler) % GPC_SAMPLE_BYTES < size;
}

#endif
