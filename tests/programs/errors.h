/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of errors.def's rows: the calls under test, by either API, and their setup.
 *
 * Failure   NEED, for the setup: prints the line and ends the program with 3.
 */
#ifndef GPC_TESTS_PROGRAMS_ERRORS_H
#define GPC_TESTS_PROGRAMS_ERRORS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime.h>

#define BLOCK_BYTES  ((uint64_t)3 << 20)
#define MISS_BYTES   ((uint64_t)77 << 20) /* asked for by nobody else */
#define NOBODY_BYTES ((uint64_t)2 << 30)  /* so far behind a block nothing was allocated */
#define MAX_THREADS  4

/* Bits of a row's argument. */
enum {
	CALL_ALLOC = 0,
	CALL_MISS,
	CALL_FREE,
	CALL_FREE_TWICE,
	CALL_FREE_NULL,
	CALL_FREE_OTHER,
	CALL_FREE_ASYNC,
	CALL_INFO,
	CALL_SYNC,
	CALL_DESTROY,
	CALL_BITS = 0xf,
	BY_SYNC = 0 << 4,
	BY_LAUNCH = 1 << 4,
	BY_STREAM = 2 << 4,
	BY_QUERY = 3 << 4,
	BY_EVENT = 4 << 4,
	BY_COPY = 5 << 4,
	BY_ASYNC_COPY = 6 << 4,
	BY_INFO = 7 << 4,
	BY_MISS = 8 << 4,
	BY_BITS = 0xf << 4,
	LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
	RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED,
	MODE_BITS = 3,
	OTHER = 4,
	MISS = 8,
	FREE = 16,
	END = 32,
	SYNC_BETWEEN = 1,
	TRIM_BETWEEN = 2,
	PINNED = 1,
	BEYOND = 2,
};

static bool is_runtime;
static CUcontext context; /* the primary one of device 0 */

static void need(int result, const char *what, int line)
{
	if (result == 0)
		return;
	fprintf(stderr, "errors.c:%d: %s: %d\n", line, what, result);
	_exit(3);
}
#define NEED(call) need((int)(call), #call, __LINE__)

/* ---- the calls under test, by either library ---- */

static int give(CUdeviceptr *ret_ptr, uint64_t size)
{
	void *made = NULL;
	int result;

	if (!is_runtime)
		return (int)cuMemAlloc(ret_ptr, size);
	result = (int)cudaMalloc(ret_ptr ? &made : NULL, size);
	if (ret_ptr)
		*ret_ptr = (uintptr_t)made;
	return result;
}

static int take(CUdeviceptr ptr)
{
	return is_runtime ? (int)cudaFree((void *)(uintptr_t)ptr) : (int)cuMemFree(ptr);
}

static int take_async(CUdeviceptr ptr)
{
	return is_runtime ? (int)cudaFreeAsync((void *)(uintptr_t)ptr, NULL)
			  : (int)cuMemFreeAsync(ptr, NULL);
}

static int fill(CUdeviceptr ptr, uint64_t size)
{
	return is_runtime ? (int)cudaMemset((void *)(uintptr_t)ptr, 1, size)
			  : (int)cuMemsetD8(ptr, 1, size);
}

static int ask(void)
{
	size_t available;
	size_t total;

	return is_runtime ? (int)cudaMemGetInfo(&available, &total)
			  : (int)cuMemGetInfo(&available, &total);
}

static int wait_for_all(void)
{
	return is_runtime ? (int)cudaDeviceSynchronize() : (int)cuCtxSynchronize();
}

static int give_any(uint64_t size)
{
	CUdeviceptr ptr;

	return give(&ptr, size);
}

/* ---- what comes before ---- */

static void begin(void)
{
	NEED(cuInit(0));
	if (is_runtime)
		NEED(cudaFree(NULL));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
}

static CUdeviceptr block(void)
{
	CUdeviceptr ptr;

	NEED(give(&ptr, BLOCK_BYTES));
	return ptr;
}

/* A cache has a block to give now. */
static void warm(void)
{
	NEED(take(block()));
	NEED(wait_for_all());
}

static CUcontext make_context(void)
{
	CUcontext made;

	NEED(cuCtxCreate_v2(&made, 0, 0));
	return made;
}

struct job {
	int (*run)(uint64_t argument);
	uint64_t argument;
	CUcontext context;
	int result;
};

static void *do_job(void *arg)
{
	struct job *job = arg;

	NEED(cuCtxSetCurrent(job->context));
	job->result = job->run(job->argument);
	return NULL;
}

static int in_thread(CUcontext of, int (*run)(uint64_t argument), uint64_t argument)
{
	struct job job = { .run = run, .argument = argument, .context = of };
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, do_job, &job));
	NEED(pthread_join(thread, NULL));
	return job.result;
}

static CUdeviceptr of_thread[MAX_THREADS];

static int allocate_for(uint64_t i)
{
	return give(&of_thread[i], BLOCK_BYTES);
}

static void allocate_in_threads(CUcontext of, uint64_t n)
{
	struct job jobs[MAX_THREADS];
	pthread_t threads[MAX_THREADS];

	for (uint64_t i = 0; i < n; i++) {
		jobs[i] = (struct job){ .run = allocate_for, .argument = i, .context = of };
		NEED(pthread_create(&threads[i], NULL, do_job, &jobs[i]));
	}
	for (uint64_t i = 0; i < n; i++) {
		NEED(pthread_join(threads[i], NULL));
		NEED(jobs[i].result);
	}
}

/* The one answer to all of them, or -1. */
static int take_of_threads(uint64_t n)
{
	int result = take(of_thread[0]);

	for (uint64_t i = 1; i < n; i++) {
		if (take(of_thread[i]) != result)
			return -1;
	}
	return result;
}

static int call(uint64_t which, CUdeviceptr ptr)
{
	switch (which & CALL_BITS) {
	case CALL_ALLOC:
		return give_any(BLOCK_BYTES);
	case CALL_MISS:
		return give_any(MISS_BYTES);
	case CALL_FREE_TWICE:
		NEED(take(ptr));
		return take(ptr);
	case CALL_FREE_NULL:
		return take(0);
	case CALL_FREE_ASYNC:
		return take_async(ptr);
	case CALL_INFO:
		return ask();
	case CALL_SYNC:
		return wait_for_all();
	case CALL_DESTROY:
		return (int)cuCtxDestroy(context);
	default:
		return take(ptr);
	}
}

#endif
