/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording in a program that allocates and frees GPU memory 100,000 times a second, on the simulated
 * driver with calls of 10 us.
 *
 *   bench_program               all rows
 *   bench_program child N       one run with N rounds of work an allocation; preloaded
 *
 *   program_100k          nanoseconds an allocation with its work, everything recorded;
 *                         baseline: record:off,stacks:off
 *   program_100k_sampled  with stacks:sampled; baseline: the same
 *   program_100k_plain    everything recorded; baseline: without the library
 *
 * The work between two allocations is a fixed number of rounds, calibrated once to 10 us: a fixed time would leave less
 * work to a slower library.  Measures CPU time, which other processes do not affect.  Runs alternate, and a row is the
 * turn with the median ratio.
 */
#include <dlfcn.h>
#include <time.h>

#include "driver/cuda_abi.h"
#include "tests/bench/bench.h"

#define N_ALLOCS  30000
#define N_LIVE    64
#define N_FRAMES  26
#define PERIOD_NS 10000

static CUresult (*alloc_memory)(CUdeviceptr *, size_t);
static CUresult (*free_memory)(CUdeviceptr);

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) void work(unsigned n_rounds)
{
	uint64_t x = n_rounds;

	for (unsigned i = 0; i < n_rounds; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		bench_use(&x);
	}
}

/* Calibrates: the number of rounds that takes PERIOD_NS. */
static unsigned find_rounds(void)
{
	const unsigned n = 10000000;
	double best = 1e30;

	for (int i = 0; i < 5; i++) {
		double start = cpu_ns();

		work(n);
		start = cpu_ns() - start;
		best = start < best ? start : best;
	}
	return (unsigned)(PERIOD_NS / best * n);
}

static void run_program(unsigned n_rounds)
{
	static CUdeviceptr live[N_LIVE];

	for (unsigned i = 0; i < N_ALLOCS; i++) {
		CUdeviceptr *ptr = &live[i % N_LIVE];

		if (*ptr)
			bench_check("cuMemFree_v2", free_memory(*ptr) == CUDA_SUCCESS);
		bench_check(
			"cuMemAlloc_v2", alloc_memory(ptr, (size_t)512 << i % 12) == CUDA_SUCCESS);
		work(n_rounds);
	}
}

/* Makes the stack as deep as in real programs. */
static __attribute__((noinline)) void descend(unsigned n_frames, unsigned n_rounds)
{
	if (n_frames)
		descend(n_frames - 1, n_rounds);
	else
		run_program(n_rounds);
	__asm__ volatile("" ::: "memory");
}

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	bench_check(name, found != NULL);
	return found;
}

static int run_child(unsigned n_rounds)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUcontext context;
	double start;

	bench_check("dlopen of libcuda.so.1", library != NULL);
	*(void **)&init = find(RTLD_DEFAULT, "cuInit");
	*(void **)&retain = find(RTLD_DEFAULT, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = find(RTLD_DEFAULT, "cuCtxSetCurrent");
	*(void **)&alloc_memory = find(RTLD_DEFAULT, "cuMemAlloc_v2");
	*(void **)&free_memory = find(RTLD_DEFAULT, "cuMemFree_v2");
	bench_check("a context", init(0) == CUDA_SUCCESS && retain(&context, 0) == CUDA_SUCCESS &&
					 set_current(context) == CUDA_SUCCESS);
	descend(N_FRAMES, 1);
	start = cpu_ns();
	descend(N_FRAMES, n_rounds);
	printf("%.3f\n", (cpu_ns() - start) / N_ALLOCS);
	return 0;
}

enum subject {
	RECORDED,
	SAMPLED,
	UNRECORDED,
	PLAIN,
	N_SUBJECTS
};

static const struct {
	const char *conf; /* GPUCACHE_CONF */
	const char *library;
} subjects[N_SUBJECTS] = {
	[RECORDED] = { "stacks:all", "libgpucache.so" },
	[SAMPLED] = { "stacks:sampled", "libgpucache.so" },
	[UNRECORDED] = { "stacks:off,record:off", "libgpucache.so" },
	[PLAIN] = { "", NULL },
};

static double measure(
	const char *build, const char *folder, enum subject subject, unsigned n_rounds)
{
	const char *library = subjects[subject].library;
	char command[2048];
	double value = 0;
	FILE *child;

	snprintf(command, sizeof command,
		"GPUCACHE_CONF=%s GPUCACHE_OUTPUT=%s/%%p.gpucache GPUSIM=malloc_us:10,free_us:10 "
		"LD_LIBRARY_PATH=%s/simcuda LD_PRELOAD=%s%s%s %s/tests/bench/bench_program child "
		"%u",
		subjects[subject].conf, folder, build, library ? build : "", library ? "/" : "",
		library ? library : "", build, n_rounds);
	child = popen(command, "r");
	bench_check("popen", child != NULL);
	bench_check(command, fscanf(child, "%lf", &value) == 1);
	bench_check(command, pclose(child) == 0);
	return value;
}

static int run_parent(void)
{
	static double values[N_SUBJECTS][BENCH_TURNS];
	char folder[] = "/dev/shm/bench_program.XXXXXX";
	unsigned n_rounds = find_rounds();
	char command[64];
	char build[512];

	bench_find_build(build, sizeof build);
	bench_check("mkdtemp", mkdtemp(folder) != NULL);
	for (unsigned turn = 0; turn < BENCH_TURNS; turn++)
		for (int i = 0; i < N_SUBJECTS; i++)
			values[i][turn] = measure(build, folder, (enum subject)i, n_rounds);
	bench_turns_row("program_100k", values[RECORDED], "ns", values[UNRECORDED]);
	bench_turns_row("program_100k_sampled", values[SAMPLED], "ns", values[UNRECORDED]);
	bench_turns_row("program_100k_plain", values[RECORDED], "ns", values[PLAIN]);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "child") == 0)
		return run_child((unsigned)strtoul(argv[2], NULL, 10));
	if (argc > 1) {
		fputs("usage: bench_program [child N_ROUNDS]\n", stderr);
		return 2;
	}
	return run_parent();
}
