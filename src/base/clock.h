/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of the host: nanoseconds, no allocation, no system call.
 *
 * CLOCK_MONOTONIC costs 23 ns through the vDSO, twice per pair of malloc and free.  gpc_clock_ns reads
 * the processor's cycle counter instead, and converts it by an anchor: a moment at which both were
 * read.
 *
 *      ns = anchor.ns + (cycles - anchor.cycles) * anchor.rate
 *
 * The anchor is renewed every ANCHOR_CYCLES (some milliseconds), with the rate since the first anchor,
 * so the error soon falls far below a microsecond.  If the counter is not invariant (CPUID) or drifts,
 * and on other architectures, gpc_clock_ns reads CLOCK_MONOTONIC.
 *
 * Threads   Any.
 * Ordering  The anchor has a version, odd while it is renewed.  A thread that finds it odd, or another one after it
 *           has read the anchor, reads CLOCK_MONOTONIC instead.
 * Limits    Times of two threads may disagree by the error, so events are ordered by number, not by time.
 */
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

/* Monotonic time with an arbitrary zero. */
static inline uint64_t gpc_clock_monotonic_ns(void)
{
	return gpc_clock_read(CLOCK_MONOTONIC);
}

/* Nanoseconds since 1970. */
static inline uint64_t gpc_clock_realtime_ns(void)
{
	return gpc_clock_read(CLOCK_REALTIME);
}

/* The time of gpc_clock_monotonic_ns, read at less cost and accurate to a microsecond. */
uint64_t gpc_clock_ns(void);

#endif
