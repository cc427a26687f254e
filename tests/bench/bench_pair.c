/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a free and a malloc of the same size in an unmodified, preloaded program, on the simulated driver, whose
 * calls cost nothing.
 *
 *   bench_pair                                          all rows
 *   bench_pair child N_LIVE N_STREAMS N_THREADS PLACE   one measurement; needs the environment of a preloaded program
 *
 *   hit_pair          10 other blocks of 512 B are live; baseline: malloc and free of 64 B
 *   hit_pair_1m       1,000,000 other blocks are live
 *   hit_pair_hole     the freed block lies between two live ones, so nothing is coalesced or split
 *   hit_pair_p99      the 99th percentile of single pairs; baseline: their median
 *   record_pair       hit_pair; baseline: with record:off
 *   hit_pair_streams  with 4 other streams, the device idle; baseline: hit_pair
 *   hit_instructions  the instructions of hit_pair, where there is valgrind; baseline: 850
 *   threads_4         millions of pairs a second of 4 threads together; baseline: of one
 *
 * Each measurement is a process of its own; processes alternate, and a row is the turn with the median ratio.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cuda_abi.h"
#include "tests/bench/bench.h"

#define BLOCK_SIZE 512
/* A round is shorter than a time slice, so that most rounds are not interrupted even on a busy machine. */
#define N_ROUNDS    221
#define N_PAIRS     1000
#define N_SINGLE    100000
#define MAX_THREADS 16

static const char usage[] =
	"usage: bench_pair [child N_LIVE N_STREAMS N_THREADS tail|hole|count1000S]\n";

/* --- The program that is measured. ------------------------------------------------------------ */

static struct {
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
	CUresult (*stream_create)(CUstream *, unsigned int);
	CUcontext context;
} cuda;

static void *find(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	bench_check(name, found != NULL);
	return found;
}

static void open_driver(void)
{
	bench_check(
		"dlopen of libcuda.so.1", dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL);
	*(void **)&cuda.init = find("cuInit");
	*(void **)&cuda.retain = find("cuDevicePrimaryCtxRetain");
	*(void **)&cuda.set_current = find("cuCtxSetCurrent");
	*(void **)&cuda.alloc = find("cuMemAlloc_v2");
	*(void **)&cuda.free = find("cuMemFree_v2");
	*(void **)&cuda.stream_create = find("cuStreamCreate");
	bench_check("cuInit", cuda.init(0) == CUDA_SUCCESS);
	bench_check("cuDevicePrimaryCtxRetain", cuda.retain(&cuda.context, 0) == CUDA_SUCCESS);
	bench_check("cuCtxSetCurrent", cuda.set_current(cuda.context) == CUDA_SUCCESS);
}

static CUdeviceptr give(void)
{
	CUdeviceptr ptr = 0;

	bench_check("cuMemAlloc_v2", cuda.alloc(&ptr, BLOCK_SIZE) == CUDA_SUCCESS);
	return ptr;
}

static double time_pairs(unsigned n_pairs, CUdeviceptr *ptr)
{
	uint64_t start = gpc_clock_monotonic_ns();

	for (unsigned i = 0; i < n_pairs; i++) {
		bench_check("cuMemFree_v2", cuda.free(*ptr) == CUDA_SUCCESS);
		*ptr = give();
	}
	return (double)(gpc_clock_monotonic_ns() - start) / n_pairs;
}

/* The quantiles of single pairs, less the cost of reading the clock. */
static void time_singles(CUdeviceptr *ptr, double *ret_median, double *ret_p99)
{
	static double singles[N_SINGLE];
	double clock_ns;

	for (unsigned i = 0; i < N_SINGLE; i++) {
		uint64_t start = gpc_clock_monotonic_ns();

		singles[i] = (double)(gpc_clock_monotonic_ns() - start);
	}
	clock_ns = bench_median(singles, N_SINGLE);
	for (unsigned i = 0; i < N_SINGLE; i++)
		singles[i] = time_pairs(1, ptr) - clock_ns;
	*ret_median = bench_median(singles, N_SINGLE);
	*ret_p99 = bench_quantile(singles, N_SINGLE, 0.99);
}

static void *run_thread(void *arg)
{
	CUdeviceptr ptr;

	(void)arg;
	bench_check("cuCtxSetCurrent", cuda.set_current(cuda.context) == CUDA_SUCCESS);
	ptr = give();
	(void)time_pairs(N_PAIRS * N_ROUNDS, &ptr);
	return NULL;
}

/* Nanoseconds a pair of all threads together. */
static double time_threads(unsigned n_threads)
{
	uint64_t start = gpc_clock_monotonic_ns();
	pthread_t threads[MAX_THREADS];

	for (unsigned i = 0; i < n_threads; i++)
		bench_check("pthread_create", !pthread_create(&threads[i], NULL, run_thread, NULL));
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	return (double)(gpc_clock_monotonic_ns() - start) / (n_threads * N_PAIRS * N_ROUNDS);
}

static int run_child(char **argv)
{
	unsigned n_live = (unsigned)strtoul(argv[0], NULL, 10);
	unsigned n_streams = (unsigned)strtoul(argv[1], NULL, 10);
	unsigned n_threads = (unsigned)strtoul(argv[2], NULL, 10);
	bool is_hole = strcmp(argv[3], "hole") == 0;
	double mallocs[N_ROUNDS];
	double pairs[N_ROUNDS];
	double median = 0, p99 = 0;
	CUdeviceptr ptr = 0;
	CUstream stream;

	open_driver();
	if (is_hole)
		ptr = give();
	for (unsigned i = 0; i < n_live; i++)
		(void)give();
	if (!is_hole)
		ptr = give();
	for (unsigned i = 0; i < n_streams; i++)
		bench_check("cuStreamCreate", cuda.stream_create(&stream, 1) == CUDA_SUCCESS);
	(void)time_pairs(20 * N_PAIRS, &ptr);
	if (strncmp(argv[3], "count", 5) == 0) {
		(void)time_pairs((unsigned)strtoul(argv[3] + 5, NULL, 10) * N_PAIRS, &ptr);
		return 0;
	}
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		mallocs[i] = bench_malloc_pair_ns(N_PAIRS);
		pairs[i] = n_threads ? 0 : time_pairs(N_PAIRS, &ptr);
	}
	if (n_threads)
		pairs[0] = time_threads(n_threads);
	else
		time_singles(&ptr, &median, &p99);
	printf("%.3f %.3f %.3f %.3f\n", bench_median(mallocs, N_ROUNDS),
		n_threads ? pairs[0] : bench_median(pairs, N_ROUNDS), median, p99);
	return 0;
}

/* --- The parent. ------------------------------------------------------------------------------ */

enum subject {
	HIT,
	HIT_1M,
	HOLE,
	RECORD_OFF,
	STREAMS,
	THREADS_1,
	THREADS_4,
	N_SUBJECTS
};

static const struct {
	const char *conf; /* GPUCACHE_CONF */
	const char *arguments;
} subjects[N_SUBJECTS] = {
	[HIT] = { "stacks:off", "10 0 0 tail" },
	[HIT_1M] = { "stacks:off", "1000000 0 0 tail" },
	[HOLE] = { "stacks:off", "10 0 0 hole" },
	[RECORD_OFF] = { "stacks:off,record:off", "10 0 0 tail" },
	[STREAMS] = { "stacks:off", "10 4 0 tail" },
	[THREADS_1] = { "stacks:off", "10 0 1 tail" },
	[THREADS_4] = { "stacks:off", "10 0 4 tail" },
};

struct figures {
	double mallocs[BENCH_TURNS];
	double pairs[BENCH_TURNS];
	double medians[BENCH_TURNS];
	double p99s[BENCH_TURNS];
};

static void measure(const char *build, const char *folder, enum subject subject,
	struct figures *figures, unsigned turn)
{
	char command[2048];
	FILE *child;

	snprintf(command, sizeof command,
		"GPUCACHE_CONF=%s GPUCACHE_OUTPUT=%s/%%p.gpucache GPUSIM=context:0,memory:8GiB "
		"LD_LIBRARY_PATH=%s/simcuda LD_PRELOAD=%s/libgpucache.so %s/tests/bench/bench_pair "
		"child %s",
		subjects[subject].conf, folder, build, build, build, subjects[subject].arguments);
	child = popen(command, "r");
	bench_check("popen", child != NULL);
	bench_check(command,
		fscanf(child, "%lf %lf %lf %lf", &figures->mallocs[turn], &figures->pairs[turn],
			&figures->medians[turn], &figures->p99s[turn]) == 4);
	bench_check(command, pclose(child) == 0);
}

/* The instructions of a process of `thousands` pairs beyond the first 20 thousand, counted by valgrind; 0 without it. */
static double count_instructions(const char *build, const char *folder, unsigned thousands)
{
	char command[2048];
	double n = 0;
	FILE *child;

	snprintf(command, sizeof command,
		"GPUCACHE_CONF=stacks:off GPUCACHE_OUTPUT=%s/%%p.gpucache "
		"GPUSIM=context:0,memory:1GiB LD_LIBRARY_PATH=%s/simcuda "
		"LD_PRELOAD=%s/libgpucache.so "
		"valgrind --tool=callgrind --callgrind-out-file=/dev/null "
		"%s/tests/bench/bench_pair child 10 0 0 count%u 2>&1 | "
		"sed -n 's/.*Collected : //p'",
		folder, build, build, build, thousands);
	child = popen(command, "r");
	bench_check("popen", child != NULL);
	if (fscanf(child, "%lf", &n) != 1)
		n = 0;
	pclose(child);
	return n;
}

static void print_instructions(const char *build, const char *folder)
{
	double few = count_instructions(build, folder, 10);
	double many = count_instructions(build, folder, 20);

	if (few > 0 && many > few)
		bench_row("hit_instructions", (many - few) / 10000, "", 850);
}

static void print_rows(struct figures *figures)
{
	bench_turns_row("hit_pair", figures[HIT].pairs, "ns", figures[HIT].mallocs);
	bench_turns_row("hit_pair_1m", figures[HIT_1M].pairs, "ns", figures[HIT_1M].mallocs);
	bench_turns_row("hit_pair_hole", figures[HOLE].pairs, "ns", figures[HOLE].mallocs);
	bench_turns_row("hit_pair_p99", figures[HIT].p99s, "ns", figures[HIT].medians);
	bench_turns_row("record_pair", figures[HIT].pairs, "ns", figures[RECORD_OFF].pairs);
	bench_turns_row("hit_pair_streams", figures[STREAMS].pairs, "ns", figures[HIT].pairs);
	for (unsigned i = 0; i < BENCH_TURNS; i++) {
		figures[THREADS_1].pairs[i] = 1000 / figures[THREADS_1].pairs[i];
		figures[THREADS_4].pairs[i] = 1000 / figures[THREADS_4].pairs[i];
	}
	bench_turns_row("threads_4", figures[THREADS_4].pairs, "M/s", figures[THREADS_1].pairs);
}

static int run_parent(void)
{
	static struct figures figures[N_SUBJECTS];
	/* In shared memory, as by default: no writeback disturbs the measurement. */
	char folder[] = "/dev/shm/bench_pair.XXXXXX";
	char command[64];
	char build[512];

	bench_find_build(build, sizeof build);
	bench_check("mkdtemp", mkdtemp(folder) != NULL);
	for (unsigned turn = 0; turn < BENCH_TURNS; turn++)
		for (int i = 0; i < N_SUBJECTS; i++)
			measure(build, folder, (enum subject)i, &figures[i], turn);
	print_rows(figures);
	print_instructions(build, folder);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "child") == 0)
		return run_child(argv + 2);
	if (argc > 1) {
		fputs(usage, stderr);
		return 2;
	}
	return run_parent();
}
