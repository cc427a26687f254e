/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by vmm.c and arrays.c: PROGRAM SCENE [N] runs the first N steps of a scene (default: all), prints the result
 * of each, then the bytes held on device and host, and ends without freeing anything.  A test runs 1, 2, 3 ... steps
 * and compares our accounting with that.
 */
#ifndef PROGRAMS_SCENES_H
#define PROGRAMS_SCENES_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <gpusim.h>

struct scene {
	const char *name;
	void (*run)(void);
};

static int steps_left = 1 << 20;
static int device_number;
static uint64_t used_before;
static size_t host_bytes; /* held on the host */

/* What the simulated device says; 0 on a real one. */
static uint64_t device_used(void)
{
	int (*info)(int, struct gpusim_device *) = NULL;
	struct gpusim_device device;

	*(void **)(void *)&info = dlsym(RTLD_DEFAULT, "gpusim_device_info");
	return info && info(device_number, &device) == 0 ? device.own_used : 0;
}

static void end(void)
{
	printf("device bytes: %llu\n", (unsigned long long)(device_used() - used_before));
	printf("host bytes: %zu\n", host_bytes);
	fflush(stdout);
	exit(0);
}

/* One step is over. */
static void say(const char *what, CUresult result)
{
	printf("%s: %d\n", what, (int)result);
	if (--steps_left == 0)
		end();
}

/* Ends in end(), or where there is no such scene with status 2; 3: no device. */
static int run_scene(const struct scene *scenes, size_t n_scenes, int argc, char **argv)
{
	CUcontext context;

	if (argc > 2)
		steps_left = atoi(argv[2]);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 3;
	used_before = device_used();
	for (size_t i = 0; argc > 1 && i < n_scenes; i++) {
		if (strcmp(argv[1], scenes[i].name) == 0) {
			scenes[i].run();
			end();
		}
	}
	fprintf(stderr, "usage: %s SCENE [N], where SCENE is one of", argv[0]);
	for (size_t i = 0; i < n_scenes; i++)
		fprintf(stderr, " %s", scenes[i].name);
	fputc('\n', stderr);
	return 2;
}

#endif
