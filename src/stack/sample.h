/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With the option stacks:sampled, only some small requests get a stack, chosen so that each requested byte has
 * the same probability to be in a sampled request.
 *
 * A request of n < GPC_SAMPLE_BYTES bytes is sampled with probability n / GPC_SAMPLE_BYTES, independently of others.  A
 * sampled request counts as GPC_SAMPLE_BYTES bytes (gpc_share_of), so the sum of each call site is unbiased.  After N
 * bytes of a site the standard deviation of its sum is below sqrt(N * GPC_SAMPLE_BYTES): 10 % at 100 MiB.  Samples at
 * fixed intervals could always miss one of two sites that alternate.
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
	uint64_t state; /* any seed, one per thread */
};

/* splitmix64, which works with any seed. */
static inline uint64_t gpc_sampler_next(struct gpc_sampler *sampler)
{
	uint64_t x = sampler->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* True if a request of `size` bytes gets a stack. */
static inline bool gpc_sampler_takes(struct gpc_sampler *sampler, uint64_t size)
{
	return size >= GPC_SAMPLE_BYTES || gpc_sampler_next(sampler) % GPC_SAMPLE_BYTES < size;
}

#endif
