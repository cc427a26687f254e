/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of capturing a stack, with warm caches.
 *
 *   bench_stack [path of a libpython; PYTHONHOME must match it]
 *
 *   stack_native       gpc_stack_capture of 26 frames; baseline: the unwinder alone
 *   stack_python       gpc_stack_capture below 19 Python frames; baseline: the same without Python frames
 *   stack_python_walk  gpc_python_capture of these 19 frames; baseline: stack_python
 *
 * The time of one operation is the best of many short rounds: slower ones were disturbed by other processes.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stack/capture.h"

#define N_NATIVE 26
#define N_PYTHON 19
#define N_ROUNDS 300
#define N_CALLS  1500

static struct gpc_stacks with_python, without_python;
static uint64_t frames[256];
static bool measured_python;

static bool swallow(void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	(void)self;
	(void)region;
	(void)record;
	(void)size;
	return true;
}

static void open_stacks(struct gpc_stacks *stacks, bool python)
{
	struct gpc_stacks_params params = {
		.sink = { .append = swallow },
		.lookup_in = dlsym,
		.max_stacks = 8192,
		.with_python = python,
	};

	if (gpc_stacks_init(stacks, &params) != GPC_OK)
		exit(1);
}

static __attribute__((noinline)) void unwind_once(struct gpc_stacks *stacks)
{
	void *raw[64];

	if (!stacks->unwind.backtrace || stacks->unwind.backtrace(raw, 64) <= 0)
		exit(1);
}

static __attribute__((noinline)) void capture_once(struct gpc_stacks *stacks)
{
	if (!gpc_stack_capture(stacks, 0))
		exit(1);
}

static __attribute__((noinline)) void walk_python_once(struct gpc_stacks *stacks)
{
	uint32_t flags = 0;

	if (!gpc_python_capture(&stacks->python, frames, 64, &flags))
		exit(1);
}

static double time_of(void (*operation)(struct gpc_stacks *), struct gpc_stacks *stacks)
{
	double best = 1e30;

	for (int round = 0; round < N_ROUNDS; round++) {
		uint64_t start = gpc_clock_monotonic_ns();
		double ns;

		for (int i = 0; i < N_CALLS; i++)
			operation(stacks);
		ns = (double)(gpc_clock_monotonic_ns() - start) / N_CALLS;
		best = ns < best ? ns : best;
	}
	return best;
}

static void print_row(const char *name, double value, double baseline)
{
	printf("%s,%.1f,ns,%.1f,%.2f\n", name, value, baseline, value / baseline);
}

static __attribute__((noinline)) void measure_native(void)
{
	double unwinder = time_of(unwind_once, &without_python);

	print_row("stack_native", time_of(capture_once, &without_python), unwinder);
}

/* Calls itself until the captured stack has n frames. */
static __attribute__((noinline)) void descend(uint32_t n)
{
	uint32_t here = gpc_unwind_capture(&without_python.unwind, frames, 64, 0);

	/* Below lie measure_native, time_of and capture_once. */
	if (here + 3 < n)
		descend(n);
	else
		measure_native();
	__asm__ volatile("" ::: "memory");
}

static int measure_python(void)
{
	uint32_t flags = 0;
	uint32_t n = gpc_python_capture(&with_python.python, frames, 64, &flags);
	double both, walk;

	if (n != N_PYTHON) {
		fprintf(stderr, "bench_stack: %u Python frames instead of %d, flags %x\n", n,
			N_PYTHON, flags);
		return 1;
	}
	both = time_of(capture_once, &with_python);
	walk = time_of(walk_python_once, &with_python);
	print_row("stack_python", both, time_of(capture_once, &without_python));
	print_row("stack_python_walk", walk, both);
	measured_python = true;
	return 0;
}

static void *open_python(const char *path)
{
	static const char *const names[] = { "libpython3.13.so.1.0", "libpython3.12.so.1.0",
		"libpython3.11.so.1.0", "libpython3.10.so.1.0", "libpython3.9.so.1.0" };
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;

	for (size_t i = 0; !path && !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
	return library;
}

static void run_python(const char *path)
{
	static const char program[] =
		"import ctypes\n"
		"measure = ctypes.PYFUNCTYPE(ctypes.c_int)(%p)\n"
		"n = %d\n"
		"exec('def call0(): return measure()')\n"
		"for i in range(1, n):\n"
		"    exec('def call%%d(): return call%%d()' %% (i, i - 1))\n"
		"globals()['call%%d' %% (n - 1)]()\n";
	void (*initialize)(int);
	int (*run)(const char *);
	char text[512];

	if (!open_python(path)) {
		fprintf(stderr, "bench_stack: no libpython, no Python rows\n");
		return;
	}
	*(void **)&initialize = dlsym(RTLD_DEFAULT, "Py_InitializeEx");
	*(void **)&run = dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
	/* The module, and functions that are all different. */
	snprintf(text, sizeof(text), program, (void *)(uintptr_t)&measure_python, N_PYTHON - 1);
	initialize(0);
	run(text);
}

int main(int argc, char **argv)
{
	open_stacks(&without_python, false);
	descend(N_NATIVE);
	open_stacks(&with_python, true);
	run_python(argc > 1 ? argv[1] : NULL);
	gpc_stacks_fini(&with_python);
	gpc_stacks_fini(&without_python);
	return argc > 1 && !measured_python;
}
