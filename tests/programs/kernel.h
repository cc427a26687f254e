/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of a known duration: the simulated GPU is told duration and writes (gpusim.h); on a real GPU the kernel, in
 * PTX that the driver compiles, spins by the GPU's clock and then writes.
 *
 *     start [ 16 blocks of 256 threads spin until %globaltimer says so ][ each thread fills its words ]
 *
 * Invariants  1 Ranges that are filled start at a multiple of 4 and are as long as one.
 * Threads     Any.  A context must be current.
 * Failure     If the kernel cannot be loaded, ends the program with status 77; a launch returns the driver's code.
 */
#ifndef PROGRAMS_KERNEL_H
#define PROGRAMS_KERNEL_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <gpusim.h>

#define KERNEL_BLOCKS  16
#define KERNEL_THREADS 256

/* work(pointer, words, value, whether to fill, nanoseconds) */
static const char kernel_ptx[] =
	".version 6.4\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry work(.param .u64 ptr, .param .u64 words, .param .u32 value, .param .u32 "
	"fill,\n"
	" .param .u64 ns)\n{\n"
	".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %a<12>;\n"
	"ld.param.u64 %a1, [ptr];\nld.param.u64 %a2, [words];\nld.param.u64 %a3, [ns];\n"
	"ld.param.u32 %r1, [value];\nld.param.u32 %r2, [fill];\n"
	"mov.u64 %a4, %globaltimer;\n"
	"spin:\n"
	"mov.u64 %a5, %globaltimer;\nsub.u64 %a6, %a5, %a4;\n"
	"setp.lt.u64 %p1, %a6, %a3;\n@%p1 bra spin;\n"
	"setp.eq.u32 %p2, %r2, 0;\n@%p2 bra done;\n"
	"mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmov.u32 %r6, "
	"%nctaid.x;\n"
	"mad.lo.u32 %r3, %r3, %r4, %r5;\nmul.lo.u32 %r4, %r4, %r6;\n"
	"cvt.u64.u32 %a7, %r3;\ncvt.u64.u32 %a8, %r4;\n"
	"next:\n"
	"setp.ge.u64 %p3, %a7, %a2;\n@%p3 bra done;\n"
	"shl.b64 %a9, %a7, 2;\nadd.u64 %a9, %a1, %a9;\nst.global.u32 [%a9], %r1;\n"
	"add.u64 %a7, %a7, %a8;\nbra next;\n"
	"done:\nret;\n}\n";

static struct {
	pthread_once_t once;
	int (*simulate)(struct CUstream_st *, uint64_t, unsigned, const struct gpusim_range *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		struct CUstream_st *, void **, void **);
	void *function;
} kernel = { .once = PTHREAD_ONCE_INIT };

static inline void kernel_find(void *driver, const char *name, void *ret_function)
{
	void *function = driver ? dlsym(driver, name) : NULL;

	if (!function) {
		fprintf(stderr, "%s: not found\n", name);
		exit(77);
	}
	*(void **)ret_function = function;
}

static inline int kernel_submit(
	struct CUstream_st *stream, uint64_t ns, uint64_t ptr, uint64_t size, int fill)
{
	uint64_t words = size / 4;
	uint32_t value = (uint32_t)(fill & 0xff) * UINT32_C(0x01010101);
	uint32_t must_fill = fill != -1;
	void *arguments[] = { &ptr, &words, &value, &must_fill, &ns };

	return kernel.launch(kernel.function, KERNEL_BLOCKS, 1, 1, KERNEL_THREADS, 1, 1, 0, stream,
		arguments, NULL);
}

static inline void kernel_load_once(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*load)(void **, const void *);
	int (*get)(void **, void *, const char *);
	int (*synchronize)(void);
	void *module = NULL;

	*(void **)(void *)&kernel.simulate = driver ? dlsym(driver, "gpusim_launch") : NULL;
	if (kernel.simulate)
		return;
	kernel_find(driver, "cuModuleLoadData", &load);
	kernel_find(driver, "cuModuleGetFunction", &get);
	kernel_find(driver, "cuCtxSynchronize", &synchronize);
	kernel_find(driver, "cuLaunchKernel", &kernel.launch);
	/* The first launch may load what the driver put off, and that may wait for the whole device. */
	if (load(&module, kernel_ptx) != 0 || get(&kernel.function, module, "work") != 0 ||
		kernel_submit(NULL, 0, 0, 0, -1) != 0 || synchronize() != 0) {
		fprintf(stderr, "the driver does not take our kernel\n");
		exit(77);
	}
}

static inline void kernel_load(void)
{
	pthread_once(&kernel.once, kernel_load_once);
}

/* Runs for so long and, where `fill` is not -1, leaves that in every byte.  Returns the driver's code. */
static inline int kernel_launch(
	struct CUstream_st *stream, uint64_t ns, uint64_t ptr, uint64_t size, int fill)
{
	struct gpusim_range range = { .ptr = ptr, .size = size, .fill = fill };

	kernel_load();
	return kernel.simulate ? kernel.simulate(stream, ns, 1, &range)
			       : kernel_submit(stream, ns, ptr, size, fill);
}

#endif
