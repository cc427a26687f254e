/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to run out of memory, drawn by tests/scenes: scene CAUSE KEY=NUMBER...
 *
 *	leak       a loop that keeps a block each turn, with temporary buffers beside it
 *	late       steps that give all back, then a loop that keeps
 *	renew      buffers of which each turn makes larger ones
 *	model      blocks of several sizes, all of which are needed
 *	weights    of one site, many and of many sizes
 *	sawtooth   batches that come and go, then one that is too large
 *	cache      filled in the first third, then steady; then one request too many
 *	stripes    blocks of which every second one is freed, then larger ones
 *	contexts   more and more contexts
 *	pinned     memory of the host
 *
 * Prints "done" and ends with 0, or "failed at N bytes, request M" and 1 if a request failed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime.h>

#define MIB      ((size_t)1 << 20)
#define MAX_HELD 200000

static const struct {
	const char *key;
	long otherwise;
} keys[] = {
	{ "block", 4096 },   /* KiB */
	{ "temp", 0 },       /* KiB of a temporary buffer */
	{ "temps", 2 },      /* of them a turn */
	{ "turns", 100000 }, /* of the loop, at most */
	{ "keep", 1 },       /* of a leak: 0 keeps nothing */
	{ "device", 0 },     /* that runs out of memory */
	{ "others", 0 },     /* MiB held on each other device */
	{ "threads", 0 },    /* that take and give back beside it */
	{ "rest", 200 },     /* us that each of them rests between */
	{ "depth", 0 },      /* of wrappers around cudaMalloc */
	{ "managed", 0 },    /* MiB */
	{ "contexts", 1 },   /* in all */
	{ "last", 0 },       /* KiB of the last request */
	{ "n", 0 },          /* blocks of the first part */
};

#define N_KEYS (sizeof keys / sizeof keys[0])

static long values[N_KEYS];
static void *held[MAX_HELD];
static size_t n_held;
static size_t n_requests; /* of the main thread */
static int is_over;

static long value_of(const char *key)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(keys[i].key, key) == 0)
			return values[i];
	fprintf(stderr, "no key %s\n", key);
	exit(2);
}

static void fail(size_t size)
{
	printf("failed at %zu bytes, request %zu\n", size, n_requests);
	exit(1);
}

static void *wrapped(size_t size, long depth)
{
	void *ptr = NULL;

	if (depth > 0)
		return wrapped(size, depth - 1);
	n_requests++;
	if (cudaMalloc(&ptr, size) != cudaSuccess)
		fail(size);
	return ptr;
}

static void *take(size_t size)
{
	return wrapped(size, value_of("depth"));
}

static void *take_temporary(size_t size)
{
	return take(size);
}

static void remember(void *ptr)
{
	if (n_held == MAX_HELD)
		exit(3);
	held[n_held++] = ptr;
}

static void keep_result(size_t size)
{
	remember(take(size));
}

static void give_back(void *ptr)
{
	if (cudaFree(ptr) != cudaSuccess)
		exit(3);
}

static size_t kib(const char *key)
{
	return (size_t)value_of(key) << 10;
}

/* ---- the causes ---- */

static void leak(void)
{
	long n_temps = value_of("temp") ? value_of("temps") : 0;
	void *temps[16];

	for (long turn = 0; turn < value_of("turns"); turn++) {
		for (long i = 0; i < n_temps; i++)
			temps[i] = take_temporary(kib("temp"));
		if (value_of("keep"))
			keep_result(kib("block"));
		for (long i = 0; i < n_temps; i++)
			give_back(temps[i]);
	}
}

/* Training, and then an evaluation that keeps its results. */
static void late(void)
{
	for (long turn = 0; turn < value_of("turns"); turn++) {
		for (long i = 0; i < value_of("n"); i++)
			remember(take(kib("temp")));
		while (n_held)
			give_back(held[--n_held]);
	}
	for (long turn = 0; turn < value_of("last"); turn++)
		if (value_of("keep"))
			keep_result(kib("block"));
}

/* Keys and values of what was said before: longer at each turn, the old ones are copied and given back. */
static void renew(void)
{
	size_t n = (size_t)value_of("n");

	for (long turn = 1; turn <= value_of("turns"); turn++)
		for (size_t i = 0; i < n; i++) {
			void *longer = take(kib("block") * (size_t)(value_of("keep") ? turn : 1));

			give_back(take_temporary(kib("temp")));
			if (turn == 1)
				remember(longer);
			else
				give_back(held[i]);
			held[i] = longer;
		}
}

static void weights(void)
{
	for (long i = 0; i < value_of("n"); i++)
		keep_result(i % 3 ? kib("block") : 4096 * (size_t)(1 + i % 4));
}

static void load_layer(size_t size)
{
	remember(take(size));
}

static void load_bias(size_t size)
{
	remember(take(size));
}

static void load_head(size_t size)
{
	remember(take(size));
}

static void model(void)
{
	for (long i = 0; i < value_of("n"); i++) {
		load_layer(kib("block"));
		load_bias(kib("block") / 2);
		load_head(kib("block") / 4 * 3);
	}
}

static void fill(long n)
{
	for (long i = 0; i < n; i++)
		keep_result(kib("block"));
}

static void drain(size_t first, size_t step)
{
	for (size_t i = first; i < n_held; i += step) {
		give_back(held[i]);
		held[i] = NULL;
	}
}

static void sawtooth(void)
{
	for (long turn = 0; turn < value_of("turns"); turn++) {
		fill(value_of("n"));
		drain(0, 1);
		n_held = 0;
	}
	fill(value_of("n"));
	take(kib("last"));
}

static void cache(void)
{
	fill(value_of("n"));
	for (long i = 0; i < 2 * value_of("n"); i++)
		give_back(take_temporary(kib("temp")));
	take(kib("last"));
}

static void stripes(void)
{
	fill(value_of("n"));
	drain(1, 2);
	take(kib("last"));
}

static void contexts(void)
{
	CUcontext context;
	CUcontext first = NULL;

	(void)cuCtxGetCurrent(&first);
	for (long i = 1; i < value_of("contexts"); i++)
		if (cuCtxCreate(&context, NULL, 0, (CUdevice)value_of("device")) != CUDA_SUCCESS)
			fail(0);
	(void)cuCtxSetCurrent(first);
	take(kib("last"));
}

static void pinned(void)
{
	void *ptr;

	for (long i = 0; i < value_of("n"); i++)
		if (cudaHostAlloc(&ptr, kib("block"), 0) != cudaSuccess)
			fail(kib("block"));
}

static const struct {
	const char *name;
	void (*run)(void);
} causes[] = {
	{ "leak", leak },
	{ "late", late },
	{ "renew", renew },
	{ "model", model },
	{ "weights", weights },
	{ "sawtooth", sawtooth },
	{ "cache", cache },
	{ "stripes", stripes },
	{ "contexts", contexts },
	{ "pinned", pinned },
};

/* ---- what happens beside them ---- */

static void *churn(void *arg)
{
	void *ptr;

	(void)arg;
	(void)cudaSetDevice((int)value_of("device"));
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		/* The program may be ending meanwhile, and the driver with it. */
		if (cudaMalloc(&ptr, MIB / 2) == cudaSuccess)
			(void)cudaFree(ptr);
		if (value_of("rest"))
			(void)usleep((useconds_t)value_of("rest"));
	}
	return NULL;
}

static void prepare(void)
{
	int n_devices = 0;
	void *ptr;

	(void)cudaGetDeviceCount(&n_devices);
	for (int i = 0; i < n_devices; i++) {
		if (i == value_of("device"))
			continue;
		(void)cudaSetDevice(i);
		for (long mib = 0; mib < value_of("others"); mib += 16)
			if (cudaMalloc(&ptr, 16 * MIB) != cudaSuccess)
				exit(3);
	}
	(void)cudaSetDevice((int)value_of("device"));
	if (value_of("managed") &&
		cudaMallocManaged(&ptr, (size_t)value_of("managed") * MIB, cudaMemAttachGlobal))
		exit(3);
}

static void read_keys(int argc, char **argv)
{
	for (size_t i = 0; i < N_KEYS; i++)
		values[i] = keys[i].otherwise;
	for (int a = 2; a < argc; a++) {
		char *equals = strchr(argv[a], '=');
		size_t i = 0;

		while (equals && i < N_KEYS &&
			strncmp(argv[a], keys[i].key, (size_t)(equals - argv[a])))
			i++;
		if (!equals || i == N_KEYS)
			exit(2);
		values[i] = strtol(equals + 1, NULL, 10);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[8];
	long n_threads;

	if (argc < 2)
		return 2;
	read_keys(argc, argv);
	n_threads = value_of("threads");
	prepare();
	for (long i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return 3;
	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
		if (strcmp(causes[i].name, argv[1]) == 0)
			causes[i].run();
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (long i = 0; i < n_threads; i++)
		(void)pthread_join(threads[i], NULL);
	printf("done\n");
	return 0;
}
