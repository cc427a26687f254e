/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of the host: nanoseconds, no allocation, no system call (vDSO). */
#ifndef GPC_BASE_CLOCK_H
#define GPC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gpc_clock_read(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Time that only moves forward; its zero is arbitrary. */
static inline uint64_t gpc_clock_monotonic_ns(void)
{
	return gpc_clock_read(CLOCK_MONOTONIC);
}

/* Nanoseconds since 1970, as the machine believes. */
static inline uint64_t gpc_clock_realtime_ns(void)
{
	return gpc_clock_read(CLOCK_REALTIME);
}

#endif
