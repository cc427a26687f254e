/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examines whether cuCtxRecordEvent and cuCtxWaitEvent give the order of cudaFree on the device.  Prints a line
 * "question: answer" for each.
 *
 *   order list | TOPIC         each topic in its own process, so that an error in one does not end the others
 *
 * The reference is a long kernel on a stream of its own.  Later work is *behind* it if the kernel has ended by the time
 * that work has.  Times are host times.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver.h"

#define N_TIMES   200
#define KERNEL_NS (100 * MS)
#define FULL_NS   (1500 * MS)
#define N_FILL    20000

static CUcontext context;
static CUevent event;
static CUdeviceptr memory;
static char *pinned;

static void answer(const char *question, int code)
{
	printf("%s: %d\n", question, code);
	fflush(stdout);
}

static void put_in_order(void)
{
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuCtxWaitEvent(context, event));
}

static int is_running(unsigned stream)
{
	return cuStreamQuery(streams[stream]) == CUDA_ERROR_NOT_READY;
}

/* ---- which later work is behind? ---- */

static CUstream made_before; /* a blocking one */
static CUgraphExec graph;

static void do_nothing(void *arg)
{
	(void)arg;
}

static void launch(CUstream stream)
{
	NEED(kernel_launch(stream, 1000, memory, 4, 1));
}

static void on_a_stream_made_before(void)
{
	launch(streams[1]);
	NEED(cuStreamSynchronize(streams[1]));
}

static void on_a_blocking_stream(void)
{
	launch(made_before);
	NEED(cuStreamSynchronize(made_before));
}

static void on_a_stream_made_after(void)
{
	CUstream stream;

	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch(stream);
	NEED(cuStreamSynchronize(stream));
	NEED(cuStreamDestroy(stream));
}

static void on_the_legacy_stream(void)
{
	launch(CU_STREAM_LEGACY);
	NEED(cuStreamSynchronize(CU_STREAM_LEGACY));
}

static void on_a_per_thread_stream(void)
{
	launch(CU_STREAM_PER_THREAD);
	NEED(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void *be_another_thread(void *arg)
{
	(void)arg;
	NEED(cuCtxSetCurrent(context));
	on_a_per_thread_stream();
	return NULL;
}

static void on_another_threads_stream(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, be_another_thread, NULL));
	NEED(pthread_join(thread, NULL));
}

static void copy_to_the_host(void)
{
	char bytes[4096];

	NEED(cuMemcpyDtoH(bytes, memory, sizeof bytes));
}

static void copy_to_pinned_memory(void)
{
	NEED(cuMemcpyDtoH(pinned, memory, 4096));
}

static void copy_from_the_host(void)
{
	char bytes[4096] = { 0 };

	NEED(cuMemcpyHtoD(memory, bytes, sizeof bytes));
	NEED(cuStreamSynchronize(CU_STREAM_LEGACY));
}

static void copy_asynchronously(void)
{
	NEED(cuMemcpyDtoHAsync(pinned, memory, 4096, streams[1]));
	NEED(cuStreamSynchronize(streams[1]));
}

static void fill(void)
{
	NEED(cuMemsetD8(memory, 1, 4096));
	NEED(cuStreamSynchronize(CU_STREAM_LEGACY));
}

static void launch_a_graph(void)
{
	NEED(cuGraphLaunch(graph, streams[1]));
	NEED(cuStreamSynchronize(streams[1]));
}

static void call_the_host(void)
{
	NEED(cuLaunchHostFunc(streams[1], do_nothing, NULL));
	NEED(cuStreamSynchronize(streams[1]));
}

static void record_an_event(void)
{
	CUevent later;

	NEED(cuEventCreate(&later, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventRecord(later, streams[1]));
	NEED(cuEventSynchronize(later));
	NEED(cuEventDestroy(later));
}

static void synchronise_an_idle_stream(void)
{
	NEED(cuStreamSynchronize(streams[1]));
}

static void alloc_and_free_in_stream_order(void)
{
	CUdeviceptr ptr;

	NEED(cuMemAllocAsync(&ptr, MIB, streams[1]));
	NEED(cuMemFreeAsync(ptr, streams[1]));
	NEED(cuStreamSynchronize(streams[1]));
}

static const struct {
	const char *name;
	void (*submit)(void);
} later_work[] = {
	{ "a kernel on a non-blocking stream made before", on_a_stream_made_before },
	{ "a kernel on a blocking stream", on_a_blocking_stream },
	{ "a kernel on a stream made after", on_a_stream_made_after },
	{ "a kernel on the legacy stream", on_the_legacy_stream },
	{ "a kernel on a per-thread stream", on_a_per_thread_stream },
	{ "a kernel on another thread's per-thread stream", on_another_threads_stream },
	{ "cuMemcpyDtoH into pageable memory", copy_to_the_host },
	{ "cuMemcpyDtoH into pinned memory", copy_to_pinned_memory },
	{ "cuMemcpyHtoD", copy_from_the_host },
	{ "cuMemcpyDtoHAsync", copy_asynchronously },
	{ "cuMemsetD8", fill },
	{ "a graph", launch_a_graph },
	{ "a host function", call_the_host },
	{ "cuEventRecord", record_an_event },
	{ "cuStreamSynchronize of an idle stream", synchronise_an_idle_stream },
	{ "cuMemAllocAsync and cuMemFreeAsync", alloc_and_free_in_stream_order },
};

#define N_LATER (sizeof later_work / sizeof later_work[0])

static void capture_a_kernel(void)
{
	CUgraph captured;

	NEED(cuStreamBeginCapture(streams[1], CU_STREAM_CAPTURE_MODE_RELAXED));
	launch(streams[1]);
	NEED(cuStreamEndCapture(streams[1], &captured));
	NEED(cuGraphInstantiateWithFlags(&graph, captured, 0));
	NEED(cuGraphDestroy(captured));
}

/* First without the wait, to see which work is behind the kernel for another reason. */
static void ask_what_is_behind(void)
{
	NEED(cuStreamCreate(&made_before, CU_STREAM_DEFAULT));
	capture_a_kernel();
	for (size_t i = 0; i < N_LATER; i++)
		later_work[i].submit();
	NEED(cuCtxSynchronize());
	for (size_t i = 0; i < N_LATER; i++) {
		for (int has_wait = 0; has_wait <= 1; has_wait++) {
			keep_busy(0, KERNEL_NS);
			if (has_wait)
				put_in_order();
			later_work[i].submit();
			printf("%s, %s cuCtxWaitEvent: %s\n", later_work[i].name,
				has_wait ? "after" : "without",
				is_running(0) ? "not behind" : "behind");
			fflush(stdout);
			NEED(cuCtxSynchronize());
		}
	}
}

/* ---- which earlier work is before? ---- */

static void on_stream_0(void)
{
	keep_busy(0, KERNEL_NS);
}

static void long_on_the_legacy_stream(void)
{
	NEED(kernel_launch(CU_STREAM_LEGACY, KERNEL_NS, 0, 0, -1));
}

static void long_on_a_per_thread_stream(void)
{
	NEED(kernel_launch(CU_STREAM_PER_THREAD, KERNEL_NS, 0, 0, -1));
}

static void *launch_in_another_thread(void *arg)
{
	(void)arg;
	NEED(cuCtxSetCurrent(context));
	long_on_a_per_thread_stream();
	return NULL;
}

static void long_on_another_threads_stream(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, launch_in_another_thread, NULL));
	NEED(pthread_join(thread, NULL));
}

static void behind_a_host_function(void)
{
	keep_busy(0, KERNEL_NS);
	NEED(cuLaunchHostFunc(streams[0], do_nothing, NULL));
}

static void behind_an_event(void)
{
	CUevent link;

	NEED(cuEventCreate(&link, CU_EVENT_DISABLE_TIMING));
	keep_busy(0, KERNEL_NS);
	NEED(cuEventRecord(link, streams[0]));
	NEED(cuStreamWaitEvent(streams[2], link, 0));
	keep_busy(2, 1000);
	NEED(cuEventDestroy(link));
}

static const struct {
	const char *name;
	void (*submit)(void);
} earlier_work[] = {
	{ "a kernel on a non-blocking stream", on_stream_0 },
	{ "a kernel on the legacy stream", long_on_the_legacy_stream },
	{ "a kernel on a per-thread stream", long_on_a_per_thread_stream },
	{ "a kernel on an ended thread's per-thread stream", long_on_another_threads_stream },
	{ "a host function behind a kernel", behind_a_host_function },
	{ "a kernel that waits for another stream's event", behind_an_event },
};

static void ask_what_is_before(void)
{
	for (size_t i = 0; i < sizeof earlier_work / sizeof earlier_work[0]; i++) {
		uint64_t start;

		earlier_work[i].submit();
		put_in_order();
		start = now_ns();
		on_a_stream_made_before();
		printf("when work on another stream is through that was submitted after %s, of 100 "
		       "ms: "
		       "%.1f ms\n",
			earlier_work[i].name, (double)(now_ns() - start) / 1e6);
		fflush(stdout);
		NEED(cuCtxSynchronize());
	}
}

/* ---- what an event says that is recorded again ---- */

static void ask_about_recording_again(void)
{
	keep_busy(0, KERNEL_NS);
	put_in_order();
	launch(streams[1]);
	keep_busy(2, 5 * KERNEL_NS);
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuStreamSynchronize(streams[1]));
	answer("work that waits for an event waits for what it is recorded with later, too",
		!is_running(2));
	answer("cuEventQuery of it, recorded again", (int)cuEventQuery(event));
	NEED(cuCtxSynchronize());
	keep_busy(0, KERNEL_NS);
	put_in_order();
	answer("cuStreamQuery of an idle stream that is to wait", (int)cuStreamQuery(streams[1]));
	NEED(cuEventSynchronize(event));
	answer("cuEventSynchronize ends when the kernel does", !is_running(0));
}

/* ---- what it costs ---- */

static void ask_about_costs_with(unsigned n, int is_busy)
{
	uint64_t record = 0, wait = 0, first = 0, plain = 0, after = 0;
	CUevent own;

	make_streams(n + 1);
	NEED(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < N_TIMES; i++) {
		uint64_t t[6];

		for (unsigned s = 1; is_busy && i % 20 == 0 && s <= n; s++)
			keep_busy(s, MS / 10);
		t[0] = now_ns();
		keep_busy(1, 0);
		t[1] = now_ns();
		NEED(cuCtxRecordEvent(context, own));
		t[2] = now_ns();
		NEED(cuCtxWaitEvent(context, own));
		t[3] = now_ns();
		keep_busy(1, 0);
		t[4] = now_ns();
		keep_busy(1, 0);
		t[5] = now_ns();
		plain += t[1] - t[0];
		record += t[2] - t[1];
		wait += t[3] - t[2];
		first += t[4] - t[3];
		after += t[5] - t[4];
	}
	NEED(cuCtxSynchronize());
	NEED(cuEventDestroy(own));
	printf("%u streams, %s: launch %llu ns, cuCtxRecordEvent %llu ns, cuCtxWaitEvent %llu ns, "
	       "launch after it %llu ns, and the next %llu ns\n",
		n, is_busy ? "busy" : "idle", (unsigned long long)(plain / N_TIMES),
		(unsigned long long)(record / N_TIMES), (unsigned long long)(wait / N_TIMES),
		(unsigned long long)(first / N_TIMES), (unsigned long long)(after / N_TIMES));
	fflush(stdout);
}

/* The device time of the order: a chain of small kernels, with a record and a wait of the context after each. */
static void ask_about_the_device(unsigned n)
{
	for (int has_order = 0; has_order <= 1; has_order++) {
		uint64_t start = now_ns();

		for (int i = 0; i < 1000; i++) {
			keep_busy(1 + (unsigned)i % n, 10000);
			if (has_order)
				put_in_order();
		}
		NEED(cuCtxSynchronize());
		printf("1000 kernels of 10 us on %u streams, %s: %.1f ms\n", n,
			has_order ? "an order after each" : "no order",
			(double)(now_ns() - start) / 1e6);
		fflush(stdout);
	}
}

static void ask_about_costs(void)
{
	static const unsigned counts[] = { 1, 8, 64 };

	keep_busy(0, 0);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		ask_about_costs_with(counts[i], 0);
		ask_about_costs_with(counts[i], 1);
		ask_about_the_device(counts[i]);
	}
}

/* ---- does it block where a stream's queue is full? ---- */

static atomic_uint n_filled;

static void *fill_the_queue(void *arg)
{
	(void)arg;
	NEED(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < N_FILL && is_running(0); i++) {
		NEED(kernel_launch(streams[0], 0, 0, 0, -1));
		atomic_fetch_add(&n_filled, 1);
	}
	return NULL;
}

/* Prints how long the call takes, and whether the long kernel has ended when it returns. */
#define ASK_FULL(what, call)                                                                 \
	do {                                                                                 \
		uint64_t start_ = now_ns();                                                  \
		int result_ = (int)(call);                                                   \
		uint64_t ns_ = now_ns() - start_;                                            \
		printf("%s beside a full queue: code %d, %.3f ms, %s\n", what, result_,      \
			(double)ns_ / 1e6, ns_ < FULL_NS / 4 ? "does not block" : "blocks"); \
		fflush(stdout);                                                              \
	} while (0)

static void ask_one_beside_a_full_queue(int which)
{
	pthread_t thread;
	unsigned before = 1;

	atomic_store(&n_filled, 0);
	keep_busy(0, FULL_NS);
	NEED(pthread_create(&thread, NULL, fill_the_queue, NULL));
	while (before != atomic_load(&n_filled) || before == 0) {
		before = atomic_load(&n_filled);
		usleep(50000);
	}
	if (which == 0)
		printf("launches until the queue is full: %u\n", before);
	if (which == 0)
		ASK_FULL("cuCtxRecordEvent", cuCtxRecordEvent(context, event));
	else if (which == 1)
		ASK_FULL("cuEventRecord on another stream", cuEventRecord(event, streams[1]));
	else if (which == 2)
		ASK_FULL("a launch on another stream", kernel_launch(streams[1], 0, 0, 0, -1));
	else if (which == 3)
		ASK_FULL("cuEventQuery", cuEventQuery(event));
	else
		ASK_FULL("cuMemAlloc of 4 MiB", cuMemAlloc(&memory, 4 * MIB));
	NEED(pthread_join(thread, NULL));
	NEED(cuCtxSynchronize());
}

static void ask_about_full_queues(void)
{
	for (int which = 0; which < 5; which++)
		ask_one_beside_a_full_queue(which);
}

/* ---- captures, and other contexts ---- */

static void ask_about_captures(void)
{
	static const char *const names[] = { "global", "thread-local", "relaxed" };
	CUgraph captured;

	for (int mode = 0; mode < 3; mode++) {
		for (int is_wait = 0; is_wait <= 1; is_wait++) {
			CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
			int code, end;

			NEED(cuCtxRecordEvent(context, event));
			NEED(cuStreamBeginCapture(streams[1], (CUstreamCaptureMode)mode));
			NEED(cuThreadExchangeStreamCaptureMode(&own));
			code = is_wait ? (int)cuCtxWaitEvent(context, event)
				       : (int)cuCtxRecordEvent(context, event);
			NEED(cuThreadExchangeStreamCaptureMode(&own));
			captured = NULL;
			end = (int)cuStreamEndCapture(streams[1], &captured);
			printf("%s in a %s capture: %d, and the capture ends with %d\n",
				is_wait ? "cuCtxWaitEvent" : "cuCtxRecordEvent", names[mode], code,
				end);
			if (captured)
				NEED(cuGraphDestroy(captured));
		}
	}
}

static void ask_about_other_contexts(void)
{
	CUcontext other;
	CUevent mine;

	keep_busy(0, KERNEL_NS);
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuCtxCreate_v2(&other, 0, 0));
	answer("cuCtxWaitEvent of another context's event", (int)cuCtxWaitEvent(other, event));
	NEED(cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING));
	answer("cuCtxRecordEvent with another context's event",
		(int)cuCtxRecordEvent(context, mine));
	NEED(cuMemsetD8(memory, 1, 4096));
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(context));
	answer("a fill of that context is behind the kernel", !is_running(0));
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuCtxSetCurrent(other));
	answer("cuCtxWaitEvent of a context that is not current",
		(int)cuCtxWaitEvent(context, event));
	NEED(cuCtxSetCurrent(context));
	NEED(cuCtxSynchronize());
}

static const struct topic topics[] = {
	{ "behind", ask_what_is_behind },
	{ "before", ask_what_is_before },
	{ "again", ask_about_recording_again },
	{ "costs", ask_about_costs },
	{ "captures", ask_about_captures },
	{ "contexts", ask_about_other_contexts },
	{ "full", ask_about_full_queues },
};

#define N_TOPICS (sizeof topics / sizeof topics[0])

static void begin(const struct topic *topic)
{
	(void)topic;
	context = open_device();
	make_streams(3);
	memory = block(MIB);
	NEED(cuMemAllocHost((void **)(void *)&pinned, MIB));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	return ask_topic(argc, argv, topics, N_TOPICS, begin);
}
