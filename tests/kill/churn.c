/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that allocates and frees memory as fast as it can, on several threads, until it is killed.  It knows
 * nothing of gpucache.
 *
 *   churn MODEL SEED THREADS [HOW MICROSECONDS]
 *
 * The file MODEL describes at every moment what it holds (model.h).  With HOW it ends itself that many microseconds
 * after all threads are at work, at an arbitrary point of one of them: segv, abort or exit (_exit) in a signal handler;
 * `fill` touches more and more host memory until a memory limit ends it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include "model.h"

/* Most allocations are cudaMalloc's; the others go to the driver each time. */
#define DIRECT_ONE_IN 16

/* Under `fill` each operation leaks this much: some 30 MiB in a tenth of a second. */
#define FILL_BYTES 2048

/* Bounds `fill` to 128 MiB a thread, in case the memory limit has no effect. */
#define FILL_OPS (1u << 16)

static struct model *model;
static unsigned seed;
static int is_filling;

struct worker {
	struct model_thread *own;
	uint64_t random;
	cudaStream_t stream;
	char is_direct[MODEL_SLOTS]; /* 0: cudaMalloc, 1: managed, 2: pinned host memory */
};

static uint32_t draw(struct worker *worker, uint32_t n)
{
	/* Numerical Recipes' LCG; its low bits are poor, its high ones will do. */
	worker->random =
		worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((worker->random >> 33) % n);
}

static void check(const char *what, cudaError_t status)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s failed: %s (%d)\n", what, cudaGetErrorString(status), (int)status);
	exit(1);
}

static size_t draw_size(struct worker *worker)
{
	switch (draw(worker, 4)) {
	case 0:
		return 1 + draw(worker, 4096);
	case 1:
		return 1 + draw(worker, 600000);
	case 2:
		return 1 + draw(worker, 3 << 20);
	default:
		return (size_t)1 << (10 + draw(worker, 12));
	}
}

static void take(struct worker *worker, uint32_t slot)
{
	struct model_thread *own = worker->own;
	size_t size = draw_size(worker);
	uint32_t way = draw(worker, DIRECT_ONE_IN);
	void *ptr = NULL;

	worker->is_direct[slot] = way == 0 ? 1 : way == 1 ? 2 : 0;
	own->slot = slot;
	own->size = size;
	own->op = MODEL_MALLOC;
	if (way == 0)
		check("cudaMallocManaged", cudaMallocManaged(&ptr, size, cudaMemAttachGlobal));
	else if (way == 1)
		check("cudaMallocHost", cudaMallocHost(&ptr, size));
	else
		check("cudaMalloc", cudaMalloc(&ptr, size));
	own->slots[slot].size = size;
	own->slots[slot].address = (uintptr_t)ptr;
	own->op = MODEL_NONE;
	/* Queue work, so that the free finds the memory in use. */
	if (way > 1 && draw(worker, 8) == 0)
		check("cudaMemsetAsync", cudaMemsetAsync(ptr, 1, 1, worker->stream));
}

static void give(struct worker *worker, uint32_t slot)
{
	struct model_thread *own = worker->own;
	void *ptr = (void *)(uintptr_t)own->slots[slot].address;

	own->slot = slot;
	own->op = MODEL_FREE;
	if (worker->is_direct[slot] == 2)
		check("cudaFreeHost", cudaFreeHost(ptr));
	else
		check("cudaFree", cudaFree(ptr));
	own->slots[slot].address = 0;
	own->op = MODEL_NONE;
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	check("cudaStreamCreate", cudaStreamCreate(&worker->stream));
	for (;;) {
		uint32_t slot = draw(worker, MODEL_SLOTS);

		if (worker->own->slots[slot].address)
			give(worker, slot);
		else
			take(worker, slot);
		worker->own->n_ops++;
		if (is_filling && worker->own->n_ops < FILL_OPS)
			memset(malloc(FILL_BYTES), 1, FILL_BYTES);
	}
	return NULL;
}

static void end_by_segv(int number)
{
	(void)number;
	*(volatile int *)16 = 1;
}

static void end_by_abort(int number)
{
	(void)number;
	abort();
}

static void end_by_exit(int number)
{
	(void)number;
	_exit(9);
}

/* Arms the timer; its signal goes to the only thread that does not block it. */
static void set_end(const char *how, long microseconds)
{
	struct itimerval timer = { .it_value = { .tv_sec = microseconds / 1000000,
					   .tv_usec = microseconds % 1000000 } };

	is_filling = strcmp(how, "fill") == 0;
	if (is_filling)
		return;
	signal(SIGALRM, strcmp(how, "segv") == 0    ? end_by_segv
			: strcmp(how, "abort") == 0 ? end_by_abort
						    : end_by_exit);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void start_threads(uint32_t n, uint32_t n_victim)
{
	static struct worker workers[MODEL_MAX_THREADS];
	pthread_t thread;
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	for (uint32_t i = 0; i < n; i++) {
		workers[i].own = &model->threads[i];
		workers[i].random = (uint64_t)seed << 8 | i;
		/* A thread begins with its maker's mask. */
		pthread_sigmask(i == n_victim ? SIG_UNBLOCK : SIG_BLOCK, &alarm, NULL);
		if (pthread_create(&thread, NULL, work, &workers[i]))
			exit(1);
	}
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
}

int main(int argc, char **argv)
{
	uint32_t n_threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	int fd = argc > 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (n_threads == 0 || n_threads > MODEL_MAX_THREADS || fd < 0 ||
		ftruncate(fd, sizeof *model) != 0) {
		fprintf(stderr, "usage: churn MODEL SEED THREADS [HOW MICROSECONDS]\n");
		return 2;
	}
	model = mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (model == MAP_FAILED)
		return 1;
	seed = (unsigned)strtoul(argv[2], NULL, 10);
	model->n_threads = n_threads;
	start_threads(n_threads, seed % n_threads);
	for (uint32_t i = 0; i < n_threads; i++)
		while (model->threads[i].n_ops == 0)
			usleep(100);
	model->is_busy = 1;
	if (argc > 5)
		set_end(argv[4], strtol(argv[5], NULL, 10));
	for (;;)
		pause();
}
