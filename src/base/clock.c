/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales the cycle counter by an anchor (clock.h), which any thread may renew.  A thread fills the anchor that is not
 * valid, then publishes its index, so a reader needs no lock; if the index changes while it reads, it asks the kernel.
 * The rate is measured since the first anchor, so its error shrinks with the age of the process.  A counter that is
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

struct anchor {
	_Atomic uint64_t cycles;
	_Atomic uint64_t ns;
	_Atomic uint64_t rate; /* nanoseconds a cycle, times 2^32 */
};

static struct {
	_Atomic uint32_t index; /* index & 1 is the valid anchor; 0: none */
	atomic_flag is_renewing;
	atomic_bool is_off;
	struct anchor anchors[2];
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

static uint64_t translate(const struct anchor *anchor, uint64_t cycles)
{
	uint64_t passed = cycles - atomic_load_explicit(&anchor->cycles, memory_order_relaxed);
	uint64_t rate = atomic_load_explicit(&anchor->rate, memory_order_relaxed);

	return atomic_load_explicit(&anchor->ns, memory_order_relaxed) +
	       (uint64_t)(((unsigned __int128)passed * rate) >> 32);
}

static bool ran_off(uint32_t index, uint64_t cycles, uint64_t ns)
{
	uint64_t said;

	if (index == 0)
		return false;
	said = translate(&clock_state.anchors[index & 1], cycles);
	return (said > ns ? said - ns : ns - said) > MAX_ERROR_NS;
}

static void renew_alone(uint64_t cycles, uint64_t ns)
{
	uint32_t index = atomic_load_explicit(&clock_state.index, memory_order_relaxed);
	struct anchor *next = &clock_state.anchors[(index + 1) & 1];

	if (clock_state.first_ns == 0) {
		clock_state.first_cycles = cycles;
		clock_state.first_ns = ns;
		atomic_store(&clock_state.is_off, !is_invariant());
		return;
	}
	if (ns - clock_state.first_ns < MIN_BASE_NS)
		return;
	if (cycles <= clock_state.first_cycles || ran_off(index, cycles, ns)) {
		atomic_store(&clock_state.is_off, true);
		atomic_store(&clock_state.index, 0);
		return;
	}
	atomic_store_explicit(&next->cycles, cycles, memory_order_relaxed);
	atomic_store_explicit(&next->ns, ns, memory_order_relaxed);
	atomic_store_explicit(&next->rate,
		(uint64_t)(((unsigned __int128)(ns - clock_state.first_ns) << 32) /
			   (cycles - clock_state.first_cycles)),
		memory_order_relaxed);
	atomic_store_explicit(&clock_state.index, index + 1, memory_order_release);
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
	uint32_t index = atomic_load_explicit(&clock_state.index, memory_order_acquire);
	const struct anchor *anchor = &clock_state.anchors[index & 1];
	uint64_t cycles = __builtin_ia32_rdtsc();
	uint64_t ns;

	if (index == 0 || cycles - atomic_load_explicit(&anchor->cycles, memory_order_relaxed) >
				  ANCHOR_CYCLES)
		return ask_kernel();
	ns = translate(anchor, cycles);
	/* If the index has changed, another thread may have overwritten the anchor between our loads of its members. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&clock_state.index, memory_order_relaxed) != index)
		return gpc_clock_monotonic_ns();
	return ns;
}

#else

uint64_t gpc_clock_ns(void)
{
	return gpc_clock_monotonic_ns();
}

#endif
