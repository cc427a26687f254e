/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream captures while another thread allocates and frees.
 *
 *   capture MODE [inside]      MODE: global, thread-local, relaxed
 *
 *      capturer   [ Begin ... fill, use 20 ms, copy to the host ... End ] instantiate, launch, launch
 *      neighbour  malloc fill copy check free, malloc fill free, malloc fill copy check free ...
 *
 * Every capture stays open until the neighbour got some way.  With `inside` each graph uses memory
 * that was allocated in its own capture, and frees that of the graph before it, which is in flight.
 * The driver itself refuses that in the modes global and thread-local; and in mode global the
 * neighbour's first allocation ends the capture, as would a wait, so that there it never waits.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "simulated.h"

#define N_ROUNDS    10
#define MAX_EXTRA   ((size_t)32 << 20)
#define BLOCK_BYTES (3 * MIB)
#define N_STEPS     6 /* of the neighbour, during each capture */
#define SHOWN       4096

static struct {
	atomic_int n_steps;
	atomic_int n_wanted;
	atomic_int must_stop;
	int may_wait;
	int n_refused;
	int n_wrong;
} neighbour;

/* Sizes that come again and, each eighth time, one that was not there for long; none above MAX_EXTRA more. */
static size_t size_of_step(int step)
{
	return step % 8 == 7 ? BLOCK_BYTES + (size_t)step * 64 * 1024 % MAX_EXTRA : BLOCK_BYTES;
}

static void step_aside(int step, cudaStream_t stream, char *bytes)
{
	size_t size = size_of_step(step);
	void *block = NULL;

	if (cudaMalloc(&block, size) != cudaSuccess) {
		neighbour.n_refused++;
		return;
	}
	OK(cudaMemsetAsync(block, step, size, stream));
	if (step % 3 != 0 && neighbour.may_wait) { /* every third block is freed in flight */
		OK(cudaMemcpyAsync(bytes, block, SHOWN, cudaMemcpyDeviceToHost, stream));
		OK(cudaStreamSynchronize(stream));
		neighbour.n_wrong += !is_all(bytes, SHOWN, step);
	}
	if (cudaFree(block) != cudaSuccess)
		neighbour.n_refused++;
}

static void *live_beside(void *arg)
{
	cudaStream_t stream = make_stream();
	char *bytes = allocate_pinned(SHOWN);

	(void)arg;
	while (!atomic_load(&neighbour.must_stop)) {
		/* What is freed during a capture comes back when it ends: who never waits must not run ahead. */
		if (neighbour.may_wait ||
			atomic_load(&neighbour.n_steps) < atomic_load(&neighbour.n_wanted))
			step_aside(atomic_fetch_add(&neighbour.n_steps, 1), stream, bytes);
		else
			sched_yield();
	}
	return NULL;
}

static void wait_for_neighbour(void)
{
	int wanted = atomic_load(&neighbour.n_steps) + N_STEPS;

	atomic_store(&neighbour.n_wanted, wanted);
	while (atomic_load(&neighbour.n_steps) < wanted)
		sched_yield();
}

struct graph {
	cudaGraphExec_t exec; /* NULL: none */
	void *block;
	char *bytes; /* what it copies to the host */
	int value;
};

static int n_survived;
static int n_right;

/* Captures the work of one graph; no graph if the capture becomes invalid. */
static void capture(struct graph *graph, cudaStream_t stream, enum cudaStreamCaptureMode mode,
	struct graph *before, int is_inside)
{
	cudaGraph_t captured = NULL;

	OK(cudaStreamBeginCapture(stream, mode));
	if (is_inside) {
		(void)cudaMalloc(&graph->block, BLOCK_BYTES);
		if (before->block)
			(void)cudaFree(before->block);
	}
	wait_for_neighbour();
	(void)cudaMemsetAsync(graph->block, graph->value, BLOCK_BYTES, stream);
	(void)launch(stream, 20 * MS, graph->block, BLOCK_BYTES, -1);
	(void)cudaMemcpyAsync(
		graph->bytes, graph->block, BLOCK_BYTES, cudaMemcpyDeviceToHost, stream);
	wait_for_neighbour();
	if (cudaStreamEndCapture(stream, &captured) != cudaSuccess)
		return;
	n_survived++;
	OK(cudaGraphInstantiate(&graph->exec, captured, 0));
	OK(cudaGraphDestroy(captured));
}

static void replay(const struct graph *graph, cudaStream_t runner)
{
	memset(graph->bytes, 0, BLOCK_BYTES);
	if (graph->exec)
		OK(cudaGraphLaunch(graph->exec, runner));
}

static void see_end(const struct graph *graph, cudaStream_t runner)
{
	OK(cudaStreamSynchronize(runner));
	n_right += graph->exec && is_all(graph->bytes, BLOCK_BYTES, graph->value);
}

/* Each graph is replayed once alone, and once more beside the capture of the next one. */
static void capture_all(enum cudaStreamCaptureMode mode, int is_inside)
{
	cudaStream_t origin = make_stream();
	cudaStream_t runner = make_stream();
	struct graph graphs[2];

	for (int i = 0; i < 2; i++)
		graphs[i] = (struct graph){ .block = is_inside ? NULL : allocate(BLOCK_BYTES),
			.bytes = allocate_pinned(BLOCK_BYTES) };
	for (int round = 0; round < N_ROUNDS; round++) {
		struct graph *graph = &graphs[round % 2];
		struct graph *before = &graphs[(round + 1) % 2];

		graph->value = 'a' + round;
		graph->exec = NULL;
		capture(graph, origin, mode, before, is_inside);
		see_end(before, runner);
		replay(graph, runner);
		see_end(graph, runner);
		replay(graph, runner);
	}
	see_end(&graphs[(N_ROUNDS + 1) % 2], runner);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "global", "thread-local", "relaxed" };
	int is_inside = argc > 2 && strcmp(argv[2], "inside") == 0;
	pthread_t thread;
	int mode = 0;

	while (mode < 3 && argc > 1 && strcmp(argv[1], modes[mode]) != 0)
		mode++;
	neighbour.may_wait = mode != 0;
	if (mode == 3 || pthread_create(&thread, NULL, live_beside, NULL) != 0) {
		fprintf(stderr, "usage: capture MODE [inside]\n");
		return 2;
	}
	wait_for_neighbour();
	capture_all((enum cudaStreamCaptureMode)mode, is_inside);
	atomic_store(&neighbour.must_stop, 1);
	pthread_join(thread, NULL);
	printf("captures that survived: %d of %d\n", n_survived, N_ROUNDS);
	printf("replays that were right: %d of %d\n", n_right, 2 * N_ROUNDS);
	printf("wrong to the neighbour: %d\n", neighbour.n_wrong);
	printf("refused to the neighbour: %s\n", neighbour.n_refused ? "some" : "none");
	return 0;
}
