/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of the host: nanoseconds, no allocation, no system call.
 *
 * CLOCK_MONOTONIC costs 23 ns through the vDSO, and a hit would pay it twice a pair.  gpc_clock_ns
 * reads the processor's cycle counter instead, and translates it by an anchor: a moment at which
 * both were read.
 *
 *      ns = anchor.ns + (cycles - anchor.cycles) * anchor.rate
 *
 * The anchor is renewed every ANCHOR_CYCLES (some milliseconds), each time with the rate since the
 * first one, so the error soon falls far below a microsecond.  Where the counter does not run at one
 * rate on all cores (CPUID says), where it runs off, or on another architecture, gpc_clock_ns is
 * CLOCK_MONOTONIC.
 *
 * Threads   Any.
 * Ordering  Two slots in turn; an index, stored last, names the valid one.  A reader that was
 *           overtaken sees the index changed and asks the kernel.
 * Limits    Two threads' times may disagree by the error: the order of events is their number, not
 *           their time.
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

/* As gpc_clock_monotonic_ns, cheaper, to a microsecond. */
uint64_t gpc_clock_ns(void);

#endif
