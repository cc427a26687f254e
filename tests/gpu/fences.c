/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the assumptions about the driver on which safe reuse rests.  Prints a line "question: answer" for each.
 *
 *   fences list | TOPIC     each topic in its own process, so that an error in one does not end the others
 *
 * A host function that waits for a gate blocks a stream during a question.  If the driver's call waits for that stream,
 * an alarm opens the gate, so that a wrong assumption gives an answer and not a hang.  Skips these questions if host
 * functions run inside the call that submits them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver.h"

#define RUNNING          CUDA_ERROR_NOT_READY
#define KERNEL_NS        (100 * MS)
#define GATE_S           3
#define N_CONTEXT_EVENTS 64
#define N_BEHIND         1000 /* more work than a queue of the driver holds */

static CUcontext context;

static void answer(const char *question, int code, int believed)
{
	printf("%s: %d%s\n", question, code, code == believed ? "" : ", NOT AS BELIEVED");
	fflush(stdout);
}

/* ---- the gate ---- */

static atomic_int gate_is_open;

static void wait_for_gate(void *arg)
{
	(void)arg;
	while (!atomic_load(&gate_is_open))
		usleep(200);
}

static void open_gate_late(int signal)
{
	(void)signal;
	atomic_store(&gate_is_open, 1);
}

/* Returns 0 if no gate is possible. */
static int close_gate(CUstream stream)
{
	kernel_load();
	if (kernel.simulate)
		return 0;
	atomic_store(&gate_is_open, 0);
	signal(SIGALRM, open_gate_late);
	NEED(cuLaunchHostFunc(stream, wait_for_gate, NULL));
	alarm(GATE_S);
	return 1;
}

static void open_gate(void)
{
	alarm(0);
	atomic_store(&gate_is_open, 1);
	NEED(cuCtxSynchronize());
}

/* Prints what a call did while the gate was closed: it returned, or waited until the alarm opened the gate. */
static void answer_gated(const char *what, uint64_t start)
{
	double ms = (double)(now_ns() - start) / 1e6;

	printf("%s beside a stream that waits for the host: %s (%.3f ms)\n", what,
		atomic_load(&gate_is_open) ? "WAITS" : "returns", ms);
	fflush(stdout);
}

/* ---- where segments lie and what they take ---- */

static void ask_where_blocks_lie(void)
{
	static const size_t mib[] = { 2, 4, 6, 20, 22, 64, 130, 512 };
	size_t before, after, total;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof mib / sizeof mib[0]; i++) {
			CUdeviceptr ptr;

			NEED(cuMemGetInfo(&before, &total));
			ptr = block(mib[i] * MIB);
			NEED(cuMemGetInfo(&after, &total));
			printf("cuMemAlloc of %zu MiB, %s: %s, takes %zu KiB more, %s\n", mib[i],
				round ? "after 1000 small ones" : "first",
				ptr % (2 * MIB) ? "NOT 2 MiB ALIGNED" : "2 MiB aligned",
				(before - after) / KIB - mib[i] * KIB,
				ptr >> 48 ? "ABOVE 2^48" : "below 2^48");
		}
		for (size_t i = 0; i < 1000; i++)
			(void)block((i * 7919 % 3000 + 1) * 512);
	}
}

/* ---- what an event of the context stands for ---- */

static CUevent event;

static void ask_what_is_covered(const char *what, int believed)
{
	char question[128];

	snprintf(question, sizeof question, "cuEventQuery of cuCtxRecordEvent beside %s", what);
	NEED(cuCtxRecordEvent(context, event));
	answer(question, (int)cuEventQuery(event), believed);
	NEED(cuEventSynchronize(event));
	NEED(cuCtxSynchronize());
}

static void ask_about_a_graph(void)
{
	CUgraphExec exec;
	CUgraph graph;

	NEED(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
	keep_busy(0, KERNEL_NS);
	NEED(cuStreamEndCapture(streams[0], &graph));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(cuGraphLaunch(exec, streams[0]));
	ask_what_is_covered("a graph", RUNNING);
}

static void ask_about_a_host_function(void)
{
	if (!close_gate(streams[0]))
		return;
	NEED(cuCtxRecordEvent(context, event));
	answer("cuEventQuery of cuCtxRecordEvent beside a host function", (int)cuEventQuery(event),
		RUNNING);
	open_gate();
}

/* With a stream that waits until the host writes a word, if the driver has the call. */
static void ask_about_a_waiting_stream(void *word)
{
	CUresult (*wait_value)(CUstream, CUdeviceptr, uint32_t, unsigned) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	volatile uint32_t *written = word;

	*(void **)(void *)&wait_value = dlsym(driver, "cuStreamWaitValue32_v2");
	if (!wait_value || kernel.simulate)
		return;
	*written = 0;
	NEED(wait_value(streams[0], (CUdeviceptr)word, 1, 1 /* CU_STREAM_WAIT_VALUE_EQ */));
	NEED(cuCtxRecordEvent(context, event));
	answer("cuEventQuery of cuCtxRecordEvent beside cuStreamWaitValue32",
		(int)cuEventQuery(event), RUNNING);
	*written = 1;
	NEED(cuCtxSynchronize());
}

/* Does work of another context delay this context's events? */
static void ask_about_another_context(void)
{
	CUcontext other;
	CUstream stream;
	CUdeviceptr ptr;

	NEED(cuCtxCreate_v2(&other, 0, 0));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ptr = block(512 * MIB);
	for (int i = 0; i < (kernel.simulate ? 4 : 400); i++)
		NEED(cuMemsetD8Async(ptr, 1, 512 * MIB, stream));
	NEED(cuCtxSetCurrent(context));
	ask_what_is_covered("fills of another context", 0);
	NEED(cuCtxSetCurrent(other));
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(context));
}

/* The simulated GPU copies in no time. */
static void ask_about_copies(CUdeviceptr from, CUdeviceptr to, void *pinned)
{
	if (kernel.simulate)
		return;
	for (int i = 0; i < 8; i++)
		NEED(cuMemcpyDtoHAsync(pinned, from, 256 * MIB, streams[0]));
	ask_what_is_covered("copies to the host", RUNNING);
	for (int i = 0; i < 8; i++)
		NEED(cuMemcpyHtoDAsync(from, pinned, 256 * MIB, streams[0]));
	ask_what_is_covered("copies from the host", RUNNING);
	for (int i = 0; i < 200; i++)
		NEED(cuMemcpyDtoDAsync(to, from, 256 * MIB, streams[0]));
	ask_what_is_covered("copies on the device", RUNNING);
	for (int i = 0; i < 200; i++)
		NEED(cuMemsetD8Async(to, 1, 256 * MIB, streams[0]));
	ask_what_is_covered("fills", RUNNING);
}

static void ask_what_fences_cover(void)
{
	CUdeviceptr from = block(256 * MIB), to = block(256 * MIB);
	CUstream blocking;
	CUevent link;
	void *pinned;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&link, CU_EVENT_DISABLE_TIMING));
	NEED(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	NEED(cuMemHostAlloc(&pinned, 256 * MIB, 0));
	NEED(cuCtxSynchronize());
	ask_what_is_covered("nothing", 0);
	keep_busy(0, KERNEL_NS);
	ask_what_is_covered("a kernel of a non-blocking stream", RUNNING);
	NEED(kernel_launch(blocking, KERNEL_NS, 0, 0, -1));
	ask_what_is_covered("a kernel of a blocking stream", RUNNING);
	NEED(kernel_launch(CU_STREAM_LEGACY, KERNEL_NS, 0, 0, -1));
	ask_what_is_covered("a kernel of the legacy stream", RUNNING);
	NEED(kernel_launch(CU_STREAM_PER_THREAD, KERNEL_NS, 0, 0, -1));
	ask_what_is_covered("a kernel of a per-thread stream", RUNNING);
	ask_about_copies(from, to, pinned);
	keep_busy(0, KERNEL_NS);
	NEED(cuEventRecord(link, streams[0]));
	NEED(cuStreamWaitEvent(streams[1], link, 0));
	ask_what_is_covered("a stream that waits for another's kernel", RUNNING);
	ask_about_a_graph();
	ask_about_a_host_function();
	ask_about_a_waiting_stream(pinned);
	ask_about_another_context();
}

/* ---- what waits for a stream that waits for the host ---- */

static void *launch_behind(void *arg)
{
	NEED(cuCtxSetCurrent(context));
	for (int i = 0; i < N_BEHIND; i++)
		keep_busy(0, 1000);
	return arg;
}

static void ask_gated_fences(void)
{
	CUevent events[N_CONTEXT_EVENTS];
	uint64_t start, worst = 0;
	int n;

	for (int i = 0; i < N_CONTEXT_EVENTS; i++)
		NEED(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	if (!close_gate(streams[0]))
		return;
	for (n = 0; n < N_CONTEXT_EVENTS && !atomic_load(&gate_is_open); n++) {
		start = now_ns();
		NEED(cuCtxRecordEvent(context, events[n]));
		(void)cuEventQuery(events[n]);
		worst = now_ns() - start > worst ? now_ns() - start : worst;
	}
	printf("events of the context beside a stream that waits for the host: %d of %d, the worst "
	       "%.3f ms%s\n",
		n, N_CONTEXT_EVENTS, (double)worst / 1e6,
		atomic_load(&gate_is_open) ? ", IT WAITS" : "");
	open_gate();
}

static void ask_gated_full_queue(void)
{
	pthread_t thread;
	uint64_t start;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	if (!close_gate(streams[0]))
		return;
	NEED(pthread_create(&thread, NULL, launch_behind, NULL));
	usleep(500000);
	start = now_ns();
	NEED(cuCtxRecordEvent(context, event));
	answer_gated("cuCtxRecordEvent while another thread fills the queue", start);
	if (!atomic_load(&gate_is_open)) {
		start = now_ns();
		(void)cuEventQuery(event);
		answer_gated("cuEventQuery while another thread fills the queue", start);
	}
	open_gate();
	NEED(pthread_join(thread, NULL));
	NEED(cuCtxSynchronize());
}

static void ask_gated_memory(void)
{
	static const size_t sizes[] = { 4 * KIB, 256 * KIB, 2 * MIB, 64 * MIB, GIB };
	size_t available, total;
	CUdeviceptr ptr;
	uint64_t start;
	char what[64];

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		ptr = block(sizes[i]);
		if (!close_gate(streams[0]))
			return;
		start = now_ns();
		CUdeviceptr other = block(sizes[i]);
		snprintf(what, sizeof what, "cuMemAlloc of %zu KiB", sizes[i] / KIB);
		answer_gated(what, start);
		open_gate();
		close_gate(streams[0]);
		start = now_ns();
		NEED(cuMemFree(ptr));
		snprintf(what, sizeof what, "cuMemFree of %zu KiB", sizes[i] / KIB);
		answer_gated(what, start);
		open_gate();
		NEED(cuMemFree(other));
	}
	close_gate(streams[0]);
	start = now_ns();
	NEED(cuMemGetInfo(&available, &total));
	answer_gated("cuMemGetInfo", start);
	open_gate();
}

/* ---- what cuMemFree waits for, by size and number of streams ---- */

static void ask_what_frees_wait_for(void)
{
	static const size_t sizes[] = { 4 * KIB, 512 * KIB, MIB, 2 * MIB, 16 * MIB, 128 * MIB,
		GIB };
	static const unsigned counts[] = { 1, 8, 64 };

	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
		make_streams(counts[c]);
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			CUdeviceptr ptr = block(sizes[i]);
			unsigned n_running = 0;
			uint64_t start;

			NEED(cuCtxSynchronize());
			for (unsigned s = 0; s < counts[c]; s++)
				keep_busy(s, KERNEL_NS / 4);
			start = now_ns();
			NEED(cuMemFree(ptr));
			start = now_ns() - start;
			for (unsigned s = 0; s < counts[c]; s++)
				n_running += cuStreamQuery(streams[s]) == RUNNING;
			printf("cuMemFree of %zu KiB beside %u streams: %.3f ms, %u still run\n",
				sizes[i] / KIB, counts[c], (double)start / 1e6, n_running);
		}
	}
	fflush(stdout);
}

/* ---- whether events of the context keep streams from running concurrently ---- */

static void ask_about_overlap(void)
{
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

	make_streams(33);
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int every = 0; every <= 10; every += 10) {
		uint64_t start;

		NEED(cuCtxSynchronize());
		start = now_ns();
		keep_busy(0, 3 * KERNEL_NS);
		for (int i = 0; i < 1000; i++) {
			keep_busy(1 + (unsigned)i % 32, 10000);
			if (every && i % every == 0)
				NEED(cuCtxRecordEvent(context, event));
		}
		for (unsigned s = 1; s < 33; s++)
			NEED(cuStreamSynchronize(streams[s]));
		printf("1000 kernels of 10 us on 32 streams beside one of 300 ms, %s connections, "
		       "%s: %.1f ms\n",
			connections ? connections : "default",
			every ? "an event of the context every 10" : "no events",
			(double)(now_ns() - start) / 1e6);
		NEED(cuCtxSynchronize());
	}
	fflush(stdout);
}

/* ---- streams that are made later ---- */

static void ask_about_later_streams(void)
{
	CUstream later;

	NEED(kernel_launch(CU_STREAM_LEGACY, 2 * KERNEL_NS, 0, 0, -1));
	NEED(cuStreamCreate(&later, CU_STREAM_DEFAULT));
	NEED(kernel_launch(later, 1000, 0, 0, -1));
	NEED(kernel_launch(CU_STREAM_PER_THREAD, 1000, 0, 0, -1));
	usleep(50000);
	answer("a blocking stream made after a kernel of the legacy stream is behind it",
		(int)cuStreamQuery(later), RUNNING);
	answer("the per-thread stream is behind a kernel of the legacy stream",
		(int)cuStreamQuery(CU_STREAM_PER_THREAD), RUNNING);
	NEED(cuCtxSynchronize());
}

/* ---- what a capture forbids ---- */

static CUdeviceptr capture_ptr;

static int call_alloc(void)
{
	return (int)cuMemAlloc(&capture_ptr, 4 * MIB);
}

static int call_free(void)
{
	return (int)cuMemFree(capture_ptr);
}

static int call_info(void)
{
	size_t available, total;

	return (int)cuMemGetInfo(&available, &total);
}

static int call_create(void)
{
	CUevent made;

	return (int)cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
}

static int call_query(void)
{
	return (int)cuEventQuery(event);
}

static int call_wait_for_event(void)
{
	return (int)cuEventSynchronize(event);
}

static int call_query_stream(void)
{
	return (int)cuStreamQuery(streams[1]);
}

static int call_wait_for_stream(void)
{
	return (int)cuStreamSynchronize(streams[1]);
}

static int call_record(void)
{
	return (int)cuCtxRecordEvent(context, event);
}

static int call_wait(void)
{
	return (int)cuCtxWaitEvent(context, event);
}

static int call_synchronize(void)
{
	return (int)cuCtxSynchronize();
}

static const struct capture_call {
	const char *name;
	int (*call)(void);
} capture_calls[] = {
	{ "cuMemAlloc", call_alloc },
	{ "cuMemFree", call_free },
	{ "cuMemGetInfo", call_info },
	{ "cuEventCreate", call_create },
	{ "cuEventQuery", call_query },
	{ "cuEventSynchronize", call_wait_for_event },
	{ "cuStreamQuery of another stream", call_query_stream },
	{ "cuStreamSynchronize of another stream", call_wait_for_stream },
	{ "cuCtxRecordEvent", call_record },
	{ "cuCtxWaitEvent", call_wait },
	{ "cuCtxSynchronize", call_synchronize },
};

struct attempt {
	const struct capture_call *call;
	int is_relaxed;
	int code;
};

static void *attempt(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct attempt *own = arg;

	NEED(cuCtxSetCurrent(context));
	if (own->is_relaxed)
		NEED(cuThreadExchangeStreamCaptureMode(&mode));
	own->code = own->call->call();
	if (own->is_relaxed)
		NEED(cuThreadExchangeStreamCaptureMode(&mode));
	return NULL;
}

static void ask_one_capture(CUstreamCaptureMode mode, int is_other_thread, int is_relaxed,
	const struct capture_call *call)
{
	static const char *const modes[] = { "global", "thread-local", "relaxed" };
	struct attempt own = { .call = call, .is_relaxed = is_relaxed };
	CUgraph graph = NULL;
	pthread_t thread;
	int ended;

	if (call->call == call_free)
		capture_ptr = block(4 * MIB);
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuCtxSynchronize());
	NEED(cuStreamBeginCapture(streams[0], mode));
	keep_busy(0, 1000);
	if (is_other_thread) {
		NEED(pthread_create(&thread, NULL, attempt, &own));
		NEED(pthread_join(thread, NULL));
	} else {
		attempt(&own);
	}
	ended = (int)cuStreamEndCapture(streams[0], &graph);
	printf("%s %s, %s thread%s: code %d, capture %s\n", modes[mode], call->name,
		is_other_thread ? "other" : "own", is_relaxed ? ", relaxed" : "", own.code,
		ended == 0 ? "survives" : "ENDS");
	fflush(stdout);
}

static void ask_about_captures(void)
{
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int mode = 0; mode < 3; mode++) {
		for (int where = 0; where < 4; where++) {
			for (size_t i = 0; i < sizeof capture_calls / sizeof capture_calls[0]; i++)
				ask_one_capture((CUstreamCaptureMode)mode, where & 1, where >> 1,
					&capture_calls[i]);
		}
	}
}

/* ---- an event without a context ---- */

static void ask_without_a_context(void)
{
	CUdeviceptr ptr = block(MIB);

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuCtxRecordEvent(context, event));
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(NULL));
	answer("cuEventQuery without a current context", (int)cuEventQuery(event), 0);
	answer("cuCtxRecordEvent without a current context", (int)cuCtxRecordEvent(context, event),
		0);
	answer("cuMemFree without a current context", (int)cuMemFree(ptr), 0);
}

/* ---- the topics ---- */

static const struct topic topics[] = {
	{ "blocks", ask_where_blocks_lie },
	{ "covers", ask_what_fences_cover },
	{ "gated-fences", ask_gated_fences },
	{ "gated-queue", ask_gated_full_queue },
	{ "gated-memory", ask_gated_memory },
	{ "frees", ask_what_frees_wait_for },
	{ "overlap", ask_about_overlap },
	{ "later-streams", ask_about_later_streams },
	{ "captures", ask_about_captures },
	{ "no-context", ask_without_a_context },
};

#define N_TOPICS (sizeof topics / sizeof topics[0])

static void begin(const struct topic *topic)
{
	(void)topic;
	context = open_device();
	make_streams(2);
}

int main(int argc, char **argv)
{
	return ask_topic(argc, argv, topics, N_TOPICS, begin);
}
