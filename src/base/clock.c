/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales the cycle counter by an anchor (clock.h), which any thread may renew, one at a time.  Readers need no lock: they
 * ask the kernel while the anchor is renewed, and as long as there is none: its version is odd then, too.  The rate is measured since the first anchor, so its error shrinks with the age of the process.  A counter that is
 * once wrong by a millisecond is not used any more.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* The rate is measured over at least this time: reading both clocks 0.1 us apart then changes it by 0.01 %. */
#define MIN_BASE_NS (UINT64_C(1) << 20)

/* An anchor serves this many cycles: 8 to 17 ms at 4 to 2 GHz. */
#define ANCHOR_CYCLES (UINT64_C(1) << 25)

/* Reading counter, clock and counter takes some hundred cycles.  If it took more, the thread was interrupted. */
#define MAX_PAIR_CYCLES UINT64_C(8192)

/* If the counter drifts by this much while one anchor is valid, it is not used any more. */
#define MAX_ERROR_NS UINT64_C(1000000)

static struct {
	_Atomic uint32_t version;
	_Atomic uint64_t cycles;
	_Atomic uint64_t ns;
	_Atomic uint64_t rate; /* nanoseconds a cycle, times 2^32 */
} anchor = { .version = 1 };

static struct {
	atomic_flag is_renewing;
	atomic_bool is_off;
	uint64_t first_cycles; /* the first anchor; used only while is_renewing is set */
	uint64_t first_ns;
} clock_state = { .is_renewing = ATOMIC_FLAG_INIT };

/* CPUID 0x80000007, EDX bit 8: the counter runs at one rate in all power states. */
static bool is_invariant(void)
{
	unsigned eax;
	unsigned ebx;
	unsigned ecx;
	unsigned edx = 0;

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

static uint64_t translate(uint64_t passed)
{
	uint64_t rate = atomic_load_explicit(&anchor.rate, memory_order_relaxed);

	return atomic_load_explicit(&anchor.ns, memory_order_relaxed) +
	       (uint64_t)(((unsigned __int128)passed * rate) >> 32);
}

static bool ran_off(uint64_t cycles, uint64_t ns)
{
	uint64_t since = atomic_load_explicit(&anchor.cycles, memory_order_relaxed);
	uint64_t said = translate(cycles - since);

	return since && (said > ns ? said - ns : ns - said) > MAX_ERROR_NS;
}

/* Makes the version odd, and returns the next even one. */
static uint32_t take_anchor_away(void)
{
	uint32_t odd = atomic_load_explicit(&anchor.version, memory_order_relaxed) | 1;

	atomic_store_explicit(&anchor.version, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	return odd + 1;
}

static void set_anchor(uint64_t cycles, uint64_t ns, uint64_t rate)
{
	uint32_t even = take_anchor_away();

	atomic_store_explicit(&anchor.cycles, cycles, memory_order_relaxed);
	atomic_store_explicit(&anchor.ns, ns, memory_order_relaxed);
	atomic_store_explicit(&anchor.rate, rate, memory_order_relaxed);
	atomic_store_explicit(&anchor.version, even, memory_order_release);
}

static void renew_alone(uint64_t cycles, uint64_t ns)
{
	if (clock_state.first_ns == 0) {
		clock_state.first_cycles = cycles;
		clock_state.first_ns = ns;
		atomic_store(&clock_state.is_off, !is_invariant());
		return;
	}
	if (ns - clock_state.first_ns < MIN_BASE_NS)
		return;
	if (cycles <= clock_state.first_cycles || ran_off(cycles, ns)) {
		atomic_store(&clock_state.is_off, true);
		(void)take_anchor_away();
		return;
	}
	set_anchor(cycles, ns,
		(uint64_t)(((unsigned __int128)(ns - clock_state.first_ns) << 32) /
			   (cycles - clock_state.first_cycles)));
}

/*
 * Reads both clocks at one moment.  Returns false if the thread was interrupted between the readings: an anchor made of
 * them would be wrong by the length of the interruption.
 */
static bool read_both(uint64_t *ret_cycles, uint64_t *ret_ns)
{
	uint64_t before = __builtin_ia32_rdtsc();
	uint64_t ns = gpc_clock_monotonic_ns();
	uint64_t after = __builtin_ia32_rdtsc();

	*ret_ns = ns;
	*ret_cycles = before + (after - before) / 2;
	return after - before < MAX_PAIR_CYCLES;
}

/* Returns the kernel's time.  One thread at a time also renews the anchor. */
static __attribute__((noinline, cold)) uint64_t ask_kernel(void)
{
	uint64_t cycles;
	uint64_t ns;
	bool is_pair = read_both(&cycles, &ns);

	if (is_pair && !atomic_load_explicit(&clock_state.is_off, memory_order_relaxed) &&
		!atomic_flag_test_and_set_explicit(
			&clock_state.is_renewing, memory_order_acquire)) {
		renew_alone(cycles, ns);
		atomic_flag_clear_explicit(&clock_state.is_renewing, memory_order_release);
	}
	return ns;
}

uint64_t gpc_clock_ns(void)
{
	uint32_t version = atomic_load_explicit(&anchor.version, memory_order_acquire);
	uint64_t passed =
		__builtin_ia32_rdtsc() - atomic_load_explicit(&anchor.cycles, memory_order_relaxed);
	uint64_t ns = translate(passed);

	/* The loads of the anchor's members end before the version is loaded again. */
	atomic_thread_fence(memory_order_acquire);
	if (__builtin_expect(
		    passed > ANCHOR_CYCLES || version & 1 ||
			    atomic_load_explicit(&anchor.version, memory_order_relaxed) != version,
		    0))
		return ask_kernel();
	return ns;
}

#else

uint64_t gpc_clock_ns(void)
{
	return gpc_clock_monotonic_ns();
}

#endif
