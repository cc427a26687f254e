/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of its caller's stack a call needs.
 *
 *   depth small      requests that fail, in a thread of 16 KiB, eight of 20 KiB at once, and coroutines of 16 KiB
 *   depth first      the first call of the process, in a thread of 16 KiB
 *   depth exit       a thread of 16 KiB ends the process after a failure
 *   depth measure    a line for each kind of call: its name, and the bytes of stack that it used
 *
 * For `measure` the stack is painted below the caller, and the deepest byte that has changed is found.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "simulated.h"

#define KIB     ((size_t)1 << 10)
#define TOO_BIG ((size_t)1 << 40)
#define PAINT   0xa5
#define PAINTED (256 * KIB)

static void *fail(void *arg)
{
	void *ptr;

	for (int i = 0; i < 3; i++)
		if (cudaMalloc(&ptr, TOO_BIG) != cudaErrorMemoryAllocation)
			return NULL;
	return arg;
}

static void *succeed(void *arg)
{
	void *ptr;

	return cudaMalloc(&ptr, 1000) == cudaSuccess ? arg : NULL;
}

static void *fail_and_exit(void *arg)
{
	(void)fail(arg);
	exit(3);
}

static void in_threads(const char *what, size_t stack, int n, void *(*call)(void *))
{
	pthread_t threads[8];
	pthread_attr_t attr;
	void *result;
	int n_good = 0;

	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, stack))
		exit(1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attr, call, threads))
			exit(1);
	for (int i = 0; i < n; i++)
		n_good += !pthread_join(threads[i], &result) && result;
	printf("%s: %d\n", what, n_good);
}

static ucontext_t main_context;
static ucontext_t coroutine;
static int n_coroutines;

static void run_coroutine(void)
{
	n_coroutines += fail(&coroutine) != NULL;
}

static void in_coroutine(void)
{
	if (getcontext(&coroutine))
		exit(1);
	coroutine.uc_stack.ss_size = 16 * KIB;
	coroutine.uc_stack.ss_sp = malloc(coroutine.uc_stack.ss_size);
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	if (swapcontext(&main_context, &coroutine))
		exit(1);
}

/* --- Measured --------------------------------------------------------------------------------- */

static void *block;
static cudaStream_t stream;

static void nothing(void)
{
}

static void request(void)
{
	(void)cudaMalloc(&block, 1000);
}

static void request_large(void)
{
	(void)cudaMalloc(&block, 30 * MIB);
}

static void release(void)
{
	(void)cudaFree(block);
}

static void request_in_order(void)
{
	(void)cudaMallocAsync(&block, MIB, stream);
}

static void release_in_order(void)
{
	(void)cudaFreeAsync(block, stream);
}

static void request_pinned(void)
{
	void *ptr;

	(void)cudaMallocHost(&ptr, MIB);
}

static void request_managed(void)
{
	void *ptr;

	(void)cudaMallocManaged(&ptr, MIB, cudaMemAttachGlobal);
}

static void create_stream(void)
{
	(void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

static void submit(void)
{
	(void)launch(stream, 1000, NULL, 0, -1);
}

static void wait(void)
{
	(void)cudaStreamSynchronize(stream);
}

static void ask_for_room(void)
{
	size_t available, total;

	(void)cudaMemGetInfo(&available, &total);
}

static void make_context(void)
{
	CUcontext context;

	(void)cuCtxCreate(&context, NULL, 0, 0);
	(void)cuCtxDestroy(context);
}

static void fail_once(void)
{
	void *ptr;

	(void)cudaMalloc(&ptr, TOO_BIG);
}

static void fail_again(void)
{
	for (int i = 0; i < 20; i++)
		fail_once();
}

static void fail_on_a_full_device(void)
{
	void *ptr;

	while (cudaMalloc(&ptr, 20 * MIB) == cudaSuccess)
		;
}

static void fail_to_manage(void)
{
	void *ptr;

	(void)cudaMallocAsync(&ptr, 900 * MIB, stream);
}

static void reset(void)
{
	(void)cudaDeviceReset();
}

static const struct step {
	const char *name;
	void (*call)(void);
} steps[] = { { "first call", request }, { "nothing", nothing }, { "malloc", request },
	{ "malloc again", request }, { "free", release }, { "malloc of 30 MiB", request_large },
	{ "free of 30 MiB", release }, { "stream", create_stream }, { "launch", submit },
	{ "wait", wait }, { "mallocAsync", request_in_order }, { "freeAsync", release_in_order },
	{ "mallocHost", request_pinned }, { "mallocManaged", request_managed },
	{ "memGetInfo", ask_for_room }, { "context", make_context }, { "failure", fail_once },
	{ "failures", fail_again }, { "failure on a full device", fail_on_a_full_device },
	{ "failure in order", fail_to_manage }, { "reset", reset } };

static unsigned char *painted; /* the lowest byte of the stack */

static __attribute__((noinline)) size_t depth_of(void (*call)(void))
{
	unsigned char *here = __builtin_frame_address(0);
	unsigned char *at = painted;

	memset(painted, PAINT, (size_t)(here - painted) - 512);
	call();
	while (at < here && *at == PAINT)
		at++;
	/* What this function itself uses lies in the part that was not painted. */
	return (size_t)(here - at) <= 512 ? 0 : (size_t)(here - at);
}

static void *measure_all(void *arg)
{
	size_t found[sizeof steps / sizeof steps[0]];

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		found[i] = depth_of(steps[i].call);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		printf("%s: %zu\n", steps[i].name, found[i]);
	return arg;
}

static void measure(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	painted = mmap(NULL, PAINTED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attr);
	if (painted == MAP_FAILED || pthread_attr_setstack(&attr, painted, PAINTED) ||
		pthread_create(&thread, &attr, measure_all, NULL))
		exit(1);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "small")) {
		(void)allocate(1000);
		in_threads("a thread of 16 KiB", 16 * KIB, 1, fail);
		in_threads("threads of 20 KiB", 20 * KIB, 8, fail);
		for (int i = 0; i < 3; i++)
			in_coroutine();
		printf("coroutines: %d\n", n_coroutines);
	} else if (!strcmp(mode, "first")) {
		in_threads("a thread of 16 KiB", 16 * KIB, 1, succeed);
	} else if (!strcmp(mode, "exit")) {
		(void)allocate(1000);
		in_threads("a thread of 16 KiB", 16 * KIB, 1, fail_and_exit);
	} else if (!strcmp(mode, "measure")) {
		measure();
	} else {
		return 2;
	}
	return 0;
}
