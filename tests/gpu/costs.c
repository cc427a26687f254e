/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the host time of the driver's calls.  Prints a tab-separated line for each: call, circumstances, number of
 * samples, median and 99th percentile in nanoseconds.  Each call is timed alone; the row "clock" is the cost of timing.
 *
 *   costs [MAX_BYTES]      the largest block (default: 16 GiB)
 */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define MAX_SAMPLES 2000
#define MAX_CALLS   8
#define NAME_BYTES  64

/* The most time for one row. */
#define ROW_NS (400 * MS)

struct samples {
	const char *call;
	unsigned n;
	uint64_t ns[MAX_SAMPLES];
};

static struct samples timed[MAX_CALLS];
static uint64_t row_started;

/* Times a call into its own samples, one set per call of a row, in order of first use. */
#define TIME(name, run)                           \
	do {                                      \
		uint64_t start_ = now_ns();       \
		int result_ = (int)(run);         \
		uint64_t ns_ = now_ns() - start_; \
		need(result_, #run, __LINE__);    \
		keep(name, ns_);                  \
	} while (0)

static void keep(const char *call, uint64_t ns)
{
	struct samples *samples = timed;

	while (samples->call && strcmp(samples->call, call) != 0)
		samples++;
	samples->call = call;
	if (samples->n < MAX_SAMPLES)
		samples->ns[samples->n++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void begin_row(void)
{
	memset(timed, 0, sizeof timed);
	row_started = now_ns();
}

static int is_time_left(void)
{
	return now_ns() - row_started < ROW_NS;
}

static void print_row(const char *circumstances)
{
	for (struct samples *s = timed; s->call; s++) {
		qsort(s->ns, s->n, sizeof s->ns[0], compare);
		printf("%s\t%s\t%u\t%llu\t%llu\n", s->call, circumstances, s->n,
			(unsigned long long)s->ns[s->n / 2],
			(unsigned long long)s->ns[s->n - 1 - s->n / 100]);
	}
	fflush(stdout);
}

static const char *of_bytes(size_t size)
{
	static char name[NAME_BYTES];

	if (size < MIB)
		snprintf(name, sizeof name, "%zu B", size);
	else
		snprintf(name, sizeof name, "%zu MiB", size / MIB);
	return name;
}

/* ---- memory ---- */

static void time_blocks(size_t size)
{
	CUdeviceptr ptr;

	begin_row();
	for (int i = 0; i < 300 && is_time_left(); i++) {
		TIME("cuMemAlloc", cuMemAlloc(&ptr, size));
		TIME("cuMemFree", cuMemFree(ptr));
	}
	print_row(of_bytes(size));
}

/* Times allocations that stay live, rather than one block that comes and goes. */
static void time_many_blocks(size_t size)
{
	static CUdeviceptr ptrs[100];

	begin_row();
	for (int i = 0; i < 100; i++)
		TIME("cuMemAlloc", cuMemAlloc(&ptrs[i], size));
	for (int i = 0; i < 100; i++)
		TIME("cuMemFree", cuMemFree(ptrs[i]));
	print_row(size < MIB ? "100 of 4096 B together" : "100 of 2 MiB together");
}

static void time_pool(size_t size)
{
	CUdeviceptr ptr;

	begin_row();
	for (int i = 0; i < 300 && is_time_left(); i++) {
		TIME("cuMemAllocAsync", cuMemAllocAsync(&ptr, size, streams[0]));
		TIME("cuMemFreeAsync", cuMemFreeAsync(ptr, streams[0]));
	}
	NEED(cuStreamSynchronize(streams[0]));
	print_row(of_bytes(size));
}

static void time_physical(size_t size)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
	CUmemAccessDesc access = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	begin_row();
	for (int i = 0; i < 100 && is_time_left(); i++) {
		TIME("cuMemAddressReserve", cuMemAddressReserve(&ptr, size, 0, 0, 0));
		TIME("cuMemCreate", cuMemCreate(&handle, size, &prop, 0));
		TIME("cuMemMap", cuMemMap(ptr, size, 0, handle, 0));
		TIME("cuMemSetAccess", cuMemSetAccess(ptr, size, &access, 1));
		TIME("cuMemUnmap", cuMemUnmap(ptr, size));
		TIME("cuMemRelease", cuMemRelease(handle));
		TIME("cuMemAddressFree", cuMemAddressFree(ptr, size));
	}
	print_row(of_bytes(size));
}

/* ---- what a cache calls often ---- */

static void time_small_calls(CUcontext context, unsigned n_alive, int is_busy)
{
	char circumstances[NAME_BYTES];
	size_t available, total;
	CUcontext current;
	CUevent event;

	make_streams(n_alive);
	begin_row();
	for (int i = 0; i < 1000 && is_time_left(); i++) {
		if (is_busy && i % 10 == 0)
			keep_busy(0, MS);
		TIME("cuEventCreate", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
		TIME("cuCtxRecordEvent", cuCtxRecordEvent(context, event));
		TIME("cuEventQuery", cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
		TIME("cuEventRecord", cuEventRecord(event, streams[0]));
		TIME("cuStreamWaitEvent", cuStreamWaitEvent(streams[0], event, 0));
		TIME("cuCtxGetCurrent", cuCtxGetCurrent(&current));
		TIME("cuMemGetInfo", cuMemGetInfo(&available, &total));
		NEED(cuEventDestroy(event));
	}
	NEED(cuCtxSynchronize());
	snprintf(circumstances, sizeof circumstances, "%u streams, %s", n_alive,
		is_busy ? "a kernel runs" : "idle");
	print_row(circumstances);
	begin_row();
	for (int i = 0; i < 1000 && !is_busy && is_time_left(); i++)
		TIME("cuCtxSynchronize", cuCtxSynchronize());
	print_row(circumstances);
}

static void time_clock(void)
{
	begin_row();
	for (int i = 0; i < 1000; i++)
		TIME("clock", 0);
	print_row("");
}

/* ---- threads ---- */

static CUcontext shared_context;

static void *allocate_in_thread(void *arg)
{
	struct samples *own = arg;

	NEED(cuCtxSetCurrent(shared_context));
	while (own->n < 50) {
		uint64_t start = now_ns();

		NEED(cuMemFree(block(MIB)));
		own->ns[own->n++] = now_ns() - start;
	}
	return NULL;
}

static void time_threads(unsigned n)
{
	static struct samples own[16];
	char circumstances[NAME_BYTES];
	pthread_t threads[16];

	memset(own, 0, sizeof own);
	begin_row();
	for (unsigned i = 0; i < n; i++)
		NEED(pthread_create(&threads[i], NULL, allocate_in_thread, &own[i]));
	for (unsigned i = 0; i < n; i++)
		NEED(pthread_join(threads[i], NULL));
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < own[i].n; k++)
			keep("cuMemAlloc + cuMemFree", own[i].ns[k]);
	}
	snprintf(circumstances, sizeof circumstances, "1 MiB, %u threads", n);
	print_row(circumstances);
}

/* ---- handles of other processes ---- */

/* Runs in a child forked before cuInit, because a handle cannot be opened in its own process. */
static void import_all(int from, int done)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;

	if (read(from, &handle, sizeof handle) != (ssize_t)sizeof handle)
		_exit(0);
	(void)open_device();
	begin_row();
	for (int i = 0; i < 100 && is_time_left(); i++) {
		TIME("cuIpcOpenMemHandle", cuIpcOpenMemHandle(&ptr, handle, 1));
		TIME("cuIpcCloseMemHandle", cuIpcCloseMemHandle(ptr));
	}
	print_row("64 MiB");
	(void)!write(done, "", 1);
	_exit(0);
}

static void time_handles(int to, int done)
{
	CUdeviceptr ptr = block(64 * MIB);
	CUipcMemHandle handle;
	char byte;

	begin_row();
	for (int i = 0; i < 300 && is_time_left(); i++)
		TIME("cuIpcGetMemHandle", cuIpcGetMemHandle(&handle, ptr));
	print_row("64 MiB");
	NEED(write(to, &handle, sizeof handle) != (ssize_t)sizeof handle);
	/* The block stays until the child is done or gone. */
	if (read(done, &byte, 1) != 1)
		fputs("the importing process failed\n", stderr);
	NEED(cuMemFree(ptr));
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 256, 4 * KIB, 64 * KIB, 512 * KIB, MIB, 2 * MIB, 16 * MIB,
		64 * MIB, 512 * MIB, 2 * GIB, 16 * GIB };
	size_t max_bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 16 * GIB;
	int handles[2];
	int done[2];

	NEED(pipe(handles) || pipe(done));
	if (fork() == 0) {
		close(handles[1]);
		close(done[0]);
		import_all(handles[0], done[1]);
	}
	close(handles[0]);
	close(done[1]);
	shared_context = open_device();
	time_clock();
	time_small_calls(shared_context, 1, 0);
	time_small_calls(shared_context, 4, 0);
	time_small_calls(shared_context, 64, 0);
	time_small_calls(shared_context, 64, 1);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && sizes[i] <= max_bytes; i++)
		time_blocks(sizes[i]);
	time_many_blocks(4 * KIB);
	time_many_blocks(2 * MIB);
	time_threads(1);
	time_threads(16);
	for (size_t size = 2 * MIB; size <= 512 * MIB && size <= max_bytes; size *= 16)
		time_physical(size);
	time_pool(MIB);
	time_pool(64 * MIB);
	time_handles(handles[1], done[0]);
	close(handles[1]);
	(void)wait(NULL);
	return 0;
}
