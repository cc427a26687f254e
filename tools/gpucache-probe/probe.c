/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `gpucache-run --self-test` runs: it knows nothing of gpucache, and opens the driver by name.
 *
 *   about            device 0 in words
 *   order [naive]    random blocks that are freed while the GPU still works on them; counts bytes of another owner.  naive
 *                    hands each block on at once, as no cache may: there have to be some
 *   hold [wait]      holds blocks of odd sizes, prints their sum, and ends or waits for the end
 *   fill             takes blocks until there are no more; prints the driver's code
 *
 *     stream a   [ fill block with 7 ][ fill other memory: time passes ][ copy block to the host ]      is all of it 7?
 *     host                             free, and the next owner
 *     stream b                                 [ fill block with 9 ][ ... ]
 *
 * Prints a line.  Exit status: 0; 1 a call failed, or a byte was wrong; 3 no GPU.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define N_ROUNDS  10
#define N_STEPS   64
#define N_STREAMS 4
#define N_LIVE    3
#define MOST      (2 * MIB)
#define SCRATCH   (64 * MIB)

/* The driver's functions: name, symbol, parameters. */
#define FUNCTIONS(X)                                                          \
	X(init, "cuInit", (unsigned))                                         \
	X(version, "cuDriverGetVersion", (int *))                             \
	X(count, "cuDeviceGetCount", (int *))                                 \
	X(name, "cuDeviceGetName", (char *, int, int))                        \
	X(total, "cuDeviceTotalMem_v2", (size_t *, int))                      \
	X(attribute, "cuDeviceGetAttribute", (int *, int, int))               \
	X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                 \
	X(set_current, "cuCtxSetCurrent", (void *))                           \
	X(synchronize, "cuCtxSynchronize", (void))                            \
	X(stream, "cuStreamCreate", (void **, unsigned))                      \
	X(alloc, "cuMemAlloc_v2", (uint64_t *, size_t))                       \
	X(free, "cuMemFree_v2", (uint64_t))                                   \
	X(alloc_host, "cuMemAllocHost_v2", (void **, size_t))                 \
	X(fill, "cuMemsetD8Async", (uint64_t, unsigned char, size_t, void *)) \
	X(copy, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, void *))

#define NON_BLOCKING 1  /* CU_STREAM_NON_BLOCKING */
#define MAJOR        75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, and _MINOR */

static struct {
#define X(field, symbol, parameters) int(*field) parameters;
	FUNCTIONS(X)
#undef X
} cu;

/* Of a simulated GPU: fills take no time there, but this does (src/sim/include/gpusim.h). */
static int (*simulate)(void *stream, uint64_t ns, unsigned n, const void *ranges);

#define NEED(call) need((call), #call)

static void need(int code, const char *call)
{
	if (code == 0)
		return;
	printf("%s: the driver's code %d\n", call, code);
	exit(1);
}

static _Noreturn void no_gpu(const char *why)
{
	printf("none: %s\n", why);
	exit(3);
}

static void open_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int n = 0;

	if (!driver)
		no_gpu("there is no libcuda.so.1");
#define X(field, symbol, parameters)                         \
	*(void **)(void *)&cu.field = dlsym(driver, symbol); \
	if (!cu.field)                                       \
		no_gpu("the driver has no " symbol);
	FUNCTIONS(X)
#undef X
	*(void **)(void *)&simulate = dlsym(driver, "gpusim_launch");
	if (cu.init(0) != 0 || cu.count(&n) != 0 || n == 0)
		no_gpu("the driver finds no device");
}

static void open_device(void)
{
	void *context;

	NEED(cu.retain(&context, 0));
	NEED(cu.set_current(context));
}

static int tell_about(void)
{
	int n, version, major, minor;
	char name[128];
	size_t total;

	NEED(cu.count(&n));
	NEED(cu.version(&version));
	NEED(cu.name(name, sizeof name, 0));
	NEED(cu.total(&total, 0));
	NEED(cu.attribute(&major, MAJOR, 0));
	NEED(cu.attribute(&minor, MAJOR + 1, 0));
	printf("%s, %.2f GiB, compute capability %d.%d, the first of %d; CUDA %d.%d\n", name,
		(double)total / (double)(1 << 30), major, minor, n, version / 1000,
		version % 1000 / 10);
	return 0;
}

struct step {
	size_t size;
	unsigned char value;
	unsigned char *copy;
};

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % n;
}

static uint64_t scratch;
static void *streams[N_STREAMS];
static uint64_t live[N_LIVE];
static int is_naive;

static void take_step(struct step *step)
{
	static const size_t sizes[] = { 4 * KIB, 64 * KIB, 600 * KIB, MOST };
	uint64_t *mine = &live[below(N_LIVE)];
	void *stream = streams[below(N_STREAMS)];

	if (*mine && !is_naive)
		NEED(cu.free(*mine));
	step->size = sizes[below(4)];
	step->value = (unsigned char)(below(255) + 1);
	if (!*mine || !is_naive)
		NEED(cu.alloc(mine, is_naive ? MOST : step->size));
	NEED(cu.fill(*mine, step->value, step->size, stream));
	for (unsigned i = below(8); i; i--)
		NEED(simulate ? simulate(stream, 100000, 0, NULL)
			      : cu.fill(scratch, 0, SCRATCH, stream));
	NEED(cu.copy(step->copy, *mine, step->size, stream));
}

static size_t count_wrong(const struct step *step)
{
	size_t n = 0;

	for (size_t i = 0; i < step->size; i++)
		n += step->copy[i] != step->value;
	return n;
}

static int check_order(void)
{
	static struct step steps[N_STEPS];
	void *copies;
	size_t wrong = 0;

	open_device();
	NEED(cu.alloc(&scratch, SCRATCH));
	NEED(cu.alloc_host(&copies, N_STEPS * MOST));
	for (int i = 0; i < N_STREAMS; i++)
		NEED(cu.stream(&streams[i], NON_BLOCKING));
	for (int round = 0; round < N_ROUNDS; round++) {
		for (int i = 0; i < N_STEPS; i++) {
			steps[i].copy = (unsigned char *)copies + (size_t)i * MOST;
			take_step(&steps[i]);
		}
		NEED(cu.synchronize());
		for (int i = 0; i < N_STEPS; i++)
			wrong += count_wrong(&steps[i]);
	}
	printf("%d blocks, %zu wrong bytes\n", N_ROUNDS * N_STEPS, wrong);
	return wrong != 0;
}

static int hold(int must_wait)
{
	size_t sum = 0;

	open_device();
	for (size_t i = 1; i <= 12; i++) {
		size_t size = i * 700001;
		uint64_t block;

		NEED(cu.alloc(&block, size));
		sum += size;
	}
	printf("%zu\n", sum);
	fflush(stdout);
	if (must_wait)
		for (;;)
			pause();
	return 0;
}

static int fill(void)
{
	uint64_t block;
	int code = 0;
	int n = -1;

	open_device();
	for (; code == 0 && n < 1 << 20; n++)
		code = cu.alloc(&block, 32 * MIB);
	printf("code %d after %d blocks\n", code, n);
	return code == 0;
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";

	open_driver();
	if (strcmp(what, "about") == 0)
		return tell_about();
	is_naive = count > 2 && strcmp(words[2], "naive") == 0;
	if (strcmp(what, "order") == 0)
		return check_order();
	if (strcmp(what, "hold") == 0)
		return hold(count > 2);
	if (strcmp(what, "fill") == 0)
		return fill();
	fprintf(stderr, "usage: gpucache-probe about|order|hold|fill\n");
	return 2;
}
