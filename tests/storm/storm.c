/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads that do at once what ends things: reset a device, destroy contexts and streams, free, export, fork, and
 * close a library from which they allocated.
 *
 *   storm PLUG.so SEED ROUNDS|SECONDSs     each thread makes so many rounds, or for so long
 *   storm import                           opens the exports of the other process, by its pipes
 *
 * Device 0 has the race: threads allocate and free in its primary context while others reset it, so any call there may
 * fail.  Whatever a thread does in a context of its own, on device 1, must succeed, and its data must be its own.
 * Prints how often that was not so, and whether each device has all its memory back at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#define N_DEVICES 2
#define N_THREADS 8
#define N_BLOCKS  12

static atomic_int n_bad;
static const char *plug_path;
static unsigned n_rounds;
static time_t end_s;

static bool expect_at(int line, bool condition)
{
	if (condition)
		return true;
	fprintf(stderr, "storm.c:%d\n", line);
	atomic_fetch_add(&n_bad, 1);
	return false;
}
#define expect(condition) expect_at(__LINE__, condition)

static unsigned chance(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static size_t some_size(unsigned *seed)
{
	return (size_t)512 << chance(seed, 14);
}

/* --- The race on device 0 ----------------------------------------------------------------------- */

/* Memory of each kind that a reset ends. */
static CUresult take_any(CUdeviceptr *ret_ptr, unsigned *seed)
{
	size_t pitch;

	switch (chance(seed, 8)) {
	case 0:
		return cuMemAllocManaged(ret_ptr, some_size(seed), CU_MEM_ATTACH_GLOBAL);
	case 1:
		return cuMemAllocPitch_v2(ret_ptr, &pitch, some_size(seed), 3, 4);
	case 2:
		return cuMemAllocAsync(ret_ptr, some_size(seed), NULL);
	default:
		return cuMemAlloc_v2(ret_ptr, some_size(seed));
	}
}

static void allocate_beside_resets(unsigned *seed)
{
	CUdeviceptr ptrs[N_BLOCKS];
	CUcontext context;
	size_t available;
	size_t total;
	void *host;
	unsigned n = 0;

	if (!expect(!cuDevicePrimaryCtxRetain(&context, 0)) || !expect(!cuCtxSetCurrent(context)))
		return;
	for (unsigned i = 0; i < N_BLOCKS; i++)
		n += !take_any(&ptrs[n], seed);
	if (!cuMemHostAlloc(&host, 4096, 0))
		(void)cuMemFreeHost(host);
	(void)cuMemGetInfo_v2(&available, &total);
	/* Each stops somewhere: the next reset takes the rest. */
	for (unsigned i = chance(seed, N_BLOCKS / 2); i < n; i++)
		(void)cuMemFree_v2(ptrs[i]);
	if (chance(seed, 4) == 0)
		(void)cuCtxSynchronize();
	(void)cuCtxSetCurrent(NULL);
}

static void reset(unsigned *seed)
{
	(void)seed;
	expect(!cuDevicePrimaryCtxReset_v2(0));
}

/* --- Contexts of one thread on device 1 --------------------------------------------------------- */

struct block {
	CUdeviceptr ptr;
	size_t size;
	unsigned fill;
};

static bool take(struct block *block, CUstream stream, unsigned *seed)
{
	*block = (struct block){ .size = some_size(seed), .fill = chance(seed, RAND_MAX) };
	return expect(!cuMemAlloc_v2(&block->ptr, block->size)) &&
	       expect(!cuMemsetD32Async(block->ptr, block->fill, 64, stream));
}

static void look(const struct block *block)
{
	unsigned found[64] = { 0 };

	expect(!cuMemcpyDtoH_v2(found, block->ptr, sizeof found));
	expect(found[0] == block->fill && found[63] == block->fill);
}

static void capture(CUstream stream, const struct block *block)
{
	CUgraph graph;

	if (!expect(!cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
		return;
	expect(!cuMemsetD32Async(block->ptr, block->fill, 64, stream));
	if (expect(!cuStreamEndCapture(stream, &graph)))
		expect(!cuGraphDestroy(graph));
}

static struct {
	pthread_mutex_t lock;
	int to;
	int from;
} importer = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct offer {
	CUipcMemHandle handle;
	unsigned fill;
};

static void export(const struct block *block)
{
	struct offer offer = { .fill = block->fill };
	int answer = -1;

	if (!expect(!cuIpcGetMemHandle(&offer.handle, block->ptr)))
		return;
	pthread_mutex_lock(&importer.lock);
	expect(write(importer.to, &offer, sizeof offer) == sizeof offer);
	expect(read(importer.from, &answer, sizeof answer) == sizeof answer);
	pthread_mutex_unlock(&importer.lock);
	if (!expect(answer == 0))
		fprintf(stderr, "the importer answers %d\n", answer);
}

static int import(void)
{
	struct offer offer;
	CUcontext context;

	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 1))
		return 1;
	while (read(0, &offer, sizeof offer) == sizeof offer) {
		unsigned found = 0;
		CUdeviceptr ptr;
		int answer = (int)cuIpcOpenMemHandle_v2(
			&ptr, offer.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

		if (!answer)
			answer = (int)cuMemcpyDtoH_v2(&found, ptr, sizeof found);
		if (!answer)
			answer = (int)cuIpcCloseMemHandle(ptr);
		if (!answer && found != offer.fill)
			answer = 1000;
		if (write(1, &answer, sizeof answer) != sizeof answer)
			return 1;
	}
	return 0;
}

static void use_streams(unsigned *seed)
{
	struct block blocks[N_BLOCKS];
	CUstream streams[2];
	unsigned n = 0;

	for (int i = 0; i < 2; i++)
		if (!expect(!cuStreamCreate(
			    &streams[i], i ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT)))
			return;
	for (unsigned i = 0; i < N_BLOCKS; i++) {
		n += take(&blocks[n], streams[i % 2], seed);
		if (n > 0 && chance(seed, 4) == 0)
			expect(!cuMemFree_v2(blocks[--n].ptr));
	}
	if (n > 0 && chance(seed, 4) == 0)
		capture(streams[1], &blocks[0]);
	expect(!cuCtxSynchronize());
	for (unsigned i = 0; i < n; i++)
		look(&blocks[i]);
	if (n > 1 && chance(seed, 4) == 0)
		export(&blocks[1]);
	/* What is left goes with the context. */
	for (unsigned i = chance(seed, N_BLOCKS); i < n; i++)
		expect(!cuMemFree_v2(blocks[i].ptr));
	expect(!cuStreamDestroy_v2(streams[0]));
	if (chance(seed, 2))
		expect(!cuStreamDestroy_v2(streams[1]));
}

static void live_and_die(unsigned *seed)
{
	CUcontext context;

	if (!expect(!cuCtxCreate_v2(&context, 0, 1)))
		return;
	use_streams(seed);
	expect(!cuCtxDestroy_v2(context));
}

/* --- Processes and libraries -------------------------------------------------------------------- */

/* A child may call what it likes: no CUDA survives a fork. */
static void make_child(unsigned *seed)
{
	CUdeviceptr ptr = 0;
	int status;
	pid_t pid;

	(void)seed;
	pid = fork();
	if (pid == 0)
		_exit(!cuMemAlloc_v2(&ptr, 4096) || !cuMemFree_v2(4096) || !cuCtxSynchronize());
	if (!expect(pid > 0))
		return;
	expect(waitpid(pid, &status, 0) == pid);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Allocates from code that is gone when the memory is freed. */
static void plug_in(unsigned *seed)
{
	CUresult (*take_from)(CUdeviceptr *, size_t);
	CUcontext context;
	CUdeviceptr ptr;
	void *plug = dlopen(plug_path, RTLD_NOW | RTLD_LOCAL);

	if (!expect(plug != NULL))
		return;
	*(void **)(void *)&take_from = dlsym(plug, "plug_take");
	if (expect(!cuCtxCreate_v2(&context, 0, 1))) {
		bool is_there = expect(!take_from(&ptr, some_size(seed)));

		expect(!dlclose(plug));
		if (is_there)
			expect(!cuMemFree_v2(ptr));
		expect(!cuCtxDestroy_v2(context));
	}
}

static void *storm(void *arg)
{
	static void (*const deeds[])(unsigned *) = { allocate_beside_resets, allocate_beside_resets,
		allocate_beside_resets, allocate_beside_resets, reset, live_and_die, live_and_die,
		live_and_die, live_and_die, live_and_die, plug_in, make_child };
	unsigned seed = (unsigned)(size_t)arg;

	for (unsigned i = 0; end_s ? time(NULL) < end_s : i < n_rounds; i++)
		deeds[chance(&seed, sizeof deeds / sizeof deeds[0])](&seed);
	return NULL;
}

static size_t free_bytes(CUdevice device)
{
	CUcontext context;
	size_t available = 0;
	size_t total;

	if (!expect(!cuCtxCreate_v2(&context, 0, device)))
		return 0;
	expect(!cuMemGetInfo_v2(&available, &total));
	expect(!cuCtxDestroy_v2(context));
	return available;
}

/* Before the first thread. */
static pid_t start_importer(const char *program)
{
	int to[2];
	int from[2];
	pid_t pid;

	if (pipe(to) || pipe(from))
		exit(1);
	pid = fork();
	if (pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl(program, program, "import", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	importer.to = to[1];
	importer.from = from[0];
	return pid;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	size_t before[N_DEVICES];
	size_t seed;
	pid_t pid;

	if (argc == 2 && strcmp(argv[1], "import") == 0)
		return import();
	if (argc != 4)
		return 2;
	plug_path = argv[1];
	seed = strtoul(argv[2], NULL, 10);
	n_rounds = (unsigned)strtoul(argv[3], NULL, 10);
	if (argv[3][strspn(argv[3], "0123456789")] == 's')
		end_s = time(NULL) + n_rounds;
	pid = start_importer("/proc/self/exe");
	expect(!cuInit(0));
	for (CUdevice d = 0; d < N_DEVICES; d++)
		before[d] = free_bytes(d);
	for (size_t i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, storm, (void *)(seed * N_THREADS + i));
	for (size_t i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	close(importer.to);
	expect(waitpid(pid, NULL, 0) == pid);
	expect(!cuDevicePrimaryCtxReset_v2(0));
	printf("bad: %d\n", atomic_load(&n_bad));
	for (CUdevice d = 0; d < N_DEVICES; d++)
		printf("device %d has what it had: %d\n", d, free_bytes(d) == before[d]);
	return 0;
}
