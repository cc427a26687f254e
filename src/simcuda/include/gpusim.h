/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated GPU offers beyond CUDA, for tests that need work of a known length.
 *
 * libcuda.so.1 of src/simcuda exports these; a program finds them with dlsym(RTLD_DEFAULT, ...), so that
 * it also runs, without them, on a real driver.
 */
#ifndef SIMCUDA_GPUSIM_H
#define SIMCUDA_GPUSIM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that a simulated kernel touches. */
struct gpusim_range {
	uint64_t ptr;  /* device address */
	uint64_t size; /* in bytes */
	int fill;      /* -1: the kernel only reads; 0..255: when it ends, every byte is this */
};

struct CUstream_st;

/* Submits a kernel that takes duration_ns.  Returns a CUresult. */
int gpusim_launch(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges);

/* The same by cuLaunchKernelEx: the kernel may begin when the one ahead of it in its stream has begun. */
int gpusim_launch_early(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges);

/*
 * Copies between the device's memory and the host's at once, whatever streams hold: for a host function that stands for a
 * kernel.  Either address may be of either.  Returns a CUresult.
 */
int gpusim_copy(uint64_t dst, uint64_t src, size_t size);

/* What the device says about itself; the stand-in libnvidia-ml.so.1 is fed from this. */
struct gpusim_process {
	unsigned pid;
	uint64_t used;
	char name[64];
};

struct gpusim_device {
	char name[64];
	char uuid[48];        /* "GPU-xxxxxxxx-..." */
	char pci_bus_id[32];  /* "0000:01:00.0" */
	uint64_t total;       /* as cuMemGetInfo says */
	uint64_t free;        /* as cuMemGetInfo says */
	uint64_t reserved;    /* by the driver; not part of total */
	uint64_t own_used;    /* by this process: contexts and allocations */
	int major, minor;     /* compute capability */
	int driver_version;   /* 13000 */
	unsigned n_processes; /* others */
	struct gpusim_process processes[8];
};

/* Number of devices; works before cuInit. */
int gpusim_device_count(void);

/*
 * The image that a library gives to cuLibraryLoadData before its first work in the current context, which then takes
 * what its code takes on a GPU (code.def); NULL: nothing is to be loaded.  The first says whether there ever is.
 */
int gpusim_has_code(void);
const void *gpusim_code(const char *library);

/* 0 if there is such a device; works before cuInit. */
int gpusim_device_info(int device, struct gpusim_device *ret_info);

#endif
