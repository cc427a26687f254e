/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of the simulated GPU: work of a known duration, for tests, and what the other simulated libraries need.
 *
 * The simulated libcuda.so.1 exports these functions.  Programs look them up with dlsym(RTLD_DEFAULT, ...), so that
 * they also run on a real driver, which lacks them.
 */
#ifndef SIMCUDA_GPUSIM_H
#define SIMCUDA_GPUSIM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that a simulated kernel touches. */
struct gpusim_range {
	uint64_t ptr;  /* device address */
	uint64_t size; /* in bytes */
	int fill; /* -1: the kernel only reads; 0..255: its value for every byte when it ends */
};

struct CUstream_st;

/* Submits a kernel that runs for duration_ns.  Returns a CUresult. */
int gpusim_launch(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges);

/* The same, by cuLaunchKernelEx as a dependent launch: the kernel may begin when the one before it has begun. */
int gpusim_launch_early(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges);

/*
 * Copies at once, regardless of work in streams; for a host function that does the work of a kernel.  Each address may
 * be of device or host memory.  Returns a CUresult.
 */
int gpusim_copy(uint64_t dst, uint64_t src, size_t size);

/* A simulated other process. */
struct gpusim_process {
	unsigned pid;
	uint64_t used;
	char name[64];
};

/* The state of a device, from which the stand-in libnvidia-ml.so.1 takes its figures. */
struct gpusim_device {
	char name[64];
	char uuid[48];        /* "GPU-xxxxxxxx-..." */
	char pci_bus_id[32];  /* "0000:01:00.0" */
	uint64_t total;       /* what cuMemGetInfo reports */
	uint64_t free;        /* what cuMemGetInfo reports */
	uint64_t reserved;    /* bytes of the driver, not part of `total` */
	uint64_t own_used;    /* bytes of this process: contexts and allocations */
	int major, minor;     /* compute capability */
	int driver_version;   /* 13000 */
	unsigned n_processes; /* other processes on the device */
	struct gpusim_process processes[8];
};

/* Number of devices; works before cuInit. */
int gpusim_device_count(void);

/* True if the code of libraries takes device memory on this simulated GPU (code.def). */
int gpusim_has_code(void);

/*
 * The image for cuLibraryLoadData that stands for a library's code.  Load it before the library's first work in the
 * current context.  NULL: there is nothing to load.
 */
const void *gpusim_code(const char *library);

/*
 * Finds what the driver would load of a fat binary or of another image (sim/gpu/memory/image.h): the versions of the PTX and of
 * the code, as a kernel's attributes have them.  Returns a CUresult.
 */
int gpusim_image(const void *image, int *ret_ptx, int *ret_binary);

/* Fills ret_info and returns 0, or an error if there is no such device.  Works before cuInit. */
int gpusim_device_info(int device, struct gpusim_device *ret_info);

#endif
