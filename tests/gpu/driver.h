/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs that examine the driver: the device's primary context, a clock, streams that are kept busy.
 * They are linked with libcuda.so.1, real or simulated, and know nothing of gpucache.
 *
 * Failure   NEED, for calls that are not under test: prints the line and ends the program with 1.
 */
#ifndef GPC_TESTS_GPU_DRIVER_H
#define GPC_TESTS_GPU_DRIVER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "tests/programs/kernel.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define MS  UINT64_C(1000000)

#define MAX_STREAMS 128

#define NEED(call) need((int)(call), #call, __LINE__)

static inline void need(int result, const char *what, int line)
{
	if (result == 0)
		return;
	fprintf(stderr, "line %d: %s: %d\n", line, what, result);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline CUcontext open_device(void)
{
	CUcontext context;

	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	kernel_load();
	return context;
}

static inline CUdeviceptr block(size_t size)
{
	CUdeviceptr ptr;

	NEED(cuMemAlloc(&ptr, size));
	return ptr;
}

static CUstream streams[MAX_STREAMS];
static unsigned n_streams;

/* As many streams are alive as never before: there are n now. */
static inline void make_streams(unsigned n)
{
	for (; n_streams < n; n_streams++)
		NEED(cuStreamCreate(&streams[n_streams], CU_STREAM_NON_BLOCKING));
}

static inline void keep_busy(unsigned stream, uint64_t ns)
{
	NEED(kernel_launch(streams[stream], ns, 0, 0, -1));
}

/* Each topic runs in its own process, so that an error in one does not end the others. */
struct topic {
	const char *name;
	void (*ask)(void);
};

/* Handles the arguments: "list" prints the topics, the name of a topic runs it.  Returns the exit status. */
static inline int ask_topic(int argc, char **argv, const struct topic topics[], size_t n,
	void (*begin)(const struct topic *topic))
{
	const char *wanted = argc == 2 ? argv[1] : "";
	int is_list = strcmp(wanted, "list") == 0;

	for (size_t i = 0; i < n; i++) {
		if (is_list)
			printf("%s\n", topics[i].name);
		if (strcmp(wanted, topics[i].name) != 0)
			continue;
		begin(&topics[i]);
		topics[i].ask();
		return 0;
	}
	return is_list ? 0 : 2;
}

#endif
