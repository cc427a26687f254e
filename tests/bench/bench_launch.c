/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a submission in an unmodified, preloaded program, on the simulated driver.
 *
 *   bench_launch                            all rows
 *   bench_launch child N_STREAMS N_PAIRS   one measurement
 *
 *   launch_hook       a launch of an empty grid, which the driver refuses at once, after no free; baseline:
 *                     without the library
 *   launch_free       free, malloc and such a launch, 4 other streams: each launch raises a barrier;
 *                     baseline: with free_order:fence
 *   launch_run        the same after 64 frees and mallocs; baseline: with free_order:fence
 *
 * Each measurement is a process of its own; processes alternate, and a row is the turn with the median ratio.
 */
#include <dlfcn.h>

#include "driver/cuda_abi.h"
#include "tests/bench/bench.h"

#define BLOCK_SIZE 4096
#define N_ROUNDS   21
#define N_LAUNCHES 50000
#define RUN        64

static CUresult (*alloc_memory)(CUdeviceptr *, size_t);
static CUresult (*free_memory)(CUdeviceptr);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, CUstream, void **, void **);

static void *find(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	bench_check(name, found != NULL);
	return found;
}

static double time_launches(CUdeviceptr *ptr, unsigned n_launches, unsigned n_pairs)
{
	uint64_t start = gpc_clock_monotonic_ns();

	for (unsigned i = 0; i < n_launches; i++) {
		for (unsigned k = 0; k < n_pairs; k++) {
			bench_check("cuMemFree_v2", free_memory(*ptr) == CUDA_SUCCESS);
			bench_check("cuMemAlloc_v2", alloc_memory(ptr, BLOCK_SIZE) == CUDA_SUCCESS);
		}
		bench_check("cuLaunchKernel", launch(NULL, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) ==
						      CUDA_ERROR_INVALID_VALUE);
	}
	return (double)(gpc_clock_monotonic_ns() - start) / n_launches;
}

static int run_child(unsigned n_streams, unsigned n_pairs)
{
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUresult (*create)(CUstream *, unsigned int);
	unsigned n = N_LAUNCHES / (1 + 4 * n_pairs);
	double times[N_ROUNDS];
	CUcontext context;
	CUdeviceptr ptr;
	CUstream stream;

	bench_check("libcuda.so.1", dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL);
	*(void **)&init = find("cuInit");
	*(void **)&retain = find("cuDevicePrimaryCtxRetain");
	*(void **)&set_current = find("cuCtxSetCurrent");
	*(void **)&create = find("cuStreamCreate");
	*(void **)&alloc_memory = find("cuMemAlloc_v2");
	*(void **)&free_memory = find("cuMemFree_v2");
	*(void **)&launch = find("cuLaunchKernel");
	bench_check("a context", init(0) == CUDA_SUCCESS && retain(&context, 0) == CUDA_SUCCESS &&
					 set_current(context) == CUDA_SUCCESS);
	for (unsigned i = 0; i < n_streams; i++)
		bench_check("cuStreamCreate", create(&stream, 1) == CUDA_SUCCESS);
	bench_check("cuMemAlloc_v2", alloc_memory(&ptr, BLOCK_SIZE) == CUDA_SUCCESS);
	for (unsigned i = 0; i < N_ROUNDS; i++)
		times[i] = time_launches(&ptr, n, n_pairs);
	printf("%.3f\n", bench_median(times, N_ROUNDS));
	return 0;
}

enum subject {
	HOOKED,
	PLAIN,
	FREE_DEVICE,
	FREE_FENCE,
	RUN_DEVICE,
	RUN_FENCE,
	N_SUBJECTS
};

static const struct {
	const char *conf; /* GPUCACHE_CONF */
	const char *library;
	unsigned n_streams;
	unsigned n_pairs;
} subjects[N_SUBJECTS] = {
	[HOOKED] = { "stacks:off", "libgpucache.so", 0, 0 },
	[PLAIN] = { "", NULL, 0, 0 },
	[FREE_DEVICE] = { "stacks:off,free_order:device", "libgpucache.so", 4, 1 },
	[FREE_FENCE] = { "stacks:off,free_order:fence", "libgpucache.so", 4, 1 },
	[RUN_DEVICE] = { "stacks:off,free_order:device", "libgpucache.so", 4, RUN },
	[RUN_FENCE] = { "stacks:off,free_order:fence", "libgpucache.so", 4, RUN },
};

static double measure(const char *build, enum subject subject)
{
	const char *library = subjects[subject].library;
	char command[2048];
	double value = 0;
	FILE *child;

	snprintf(command, sizeof command,
		"GPUCACHE_CONF=%s,record:off LD_LIBRARY_PATH=%s/simcuda LD_PRELOAD=%s%s%s "
		"%s/tests/bench/bench_launch child %u %u 2>/dev/null",
		subjects[subject].conf, build, library ? build : "", library ? "/" : "",
		library ? library : "", build, subjects[subject].n_streams,
		subjects[subject].n_pairs);
	child = popen(command, "r");
	bench_check("popen", child != NULL);
	bench_check(command, fscanf(child, "%lf", &value) == 1);
	bench_check(command, pclose(child) == 0);
	return value;
}

static int run_parent(void)
{
	static double values[N_SUBJECTS][BENCH_TURNS];
	char build[512];

	bench_find_build(build, sizeof build);
	for (unsigned turn = 0; turn < BENCH_TURNS; turn++)
		for (int i = 0; i < N_SUBJECTS; i++)
			values[i][turn] = measure(build, (enum subject)i);
	bench_turns_row("launch_hook", values[HOOKED], "ns", values[PLAIN]);
	bench_turns_row("launch_free", values[FREE_DEVICE], "ns", values[FREE_FENCE]);
	bench_turns_row("launch_run", values[RUN_DEVICE], "ns", values[RUN_FENCE]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "child") == 0)
		return run_child(
			(unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
	if (argc > 1) {
		fputs("usage: bench_launch [child N_STREAMS N_PAIRS]\n", stderr);
		return 2;
	}
	return run_parent();
}
