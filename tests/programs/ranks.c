/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes with a simulated GPU each run every collective of the simulated NCCL, and compare the received data
 * with the sent data.  At the end one leaves without notice, and the others must get an error.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define N     3
#define COUNT 70001 /* of int: more than a chunk, and no whole number of them */
#define ROOT  1

#define OK(call) check(#call, (long)(call), 0)

static int rank;

static void check(const char *what, long is, long should)
{
	if (is == should)
		return;
	printf("rank %d: %s: %ld, not %ld\n", rank, what, is, should);
	fflush(stdout);
	_exit(1);
}

static ncclComm_t comm;
static cudaStream_t stream;
static int *send, *receive; /* N * COUNT each, on the device */
static int seen[N * COUNT];

/* What a rank sends. */
static int sent(int from, int i)
{
	return (from + 1) * 1000000 + i;
}

static int sum(int i)
{
	int all = 0;

	for (int from = 0; from < N; from++)
		all += sent(from, i);
	return all;
}

static void fill(void)
{
	for (int i = 0; i < N * COUNT; i++)
		seen[i] = sent(rank, i);
	OK(cudaMemcpy(send, seen, sizeof seen, cudaMemcpyHostToDevice));
	OK(cudaMemset(receive, 0, sizeof seen));
}

static void look(void)
{
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemcpy(seen, receive, sizeof seen, cudaMemcpyDeviceToHost));
}

/* After each: where a rank receives a unit of each other, the row is `from`; else there is one row. */
static void collectives(void)
{
	fill();
	OK(ncclAllReduce(send, receive, COUNT, ncclInt32, ncclSum, comm, stream));
	look();
	for (int i = 0; i < COUNT; i++)
		check("all-reduce", seen[i], sum(i));
	check("behind it", seen[COUNT], 0);

	fill();
	OK(ncclReduce(send, receive, COUNT, ncclInt32, ncclSum, ROOT, comm, stream));
	look();
	for (int i = 0; i < COUNT; i++)
		check("reduce", seen[i], rank == ROOT ? sum(i) : 0);

	fill();
	OK(ncclReduceScatter(send, receive, COUNT, ncclInt32, ncclSum, comm, stream));
	look();
	for (int i = 0; i < COUNT; i++)
		check("reduce-scatter", seen[i], sum(rank * COUNT + i));
	check("behind it", seen[COUNT], 0);

	fill();
	OK(ncclBroadcast(send, receive, COUNT, ncclInt32, ROOT, comm, stream));
	look();
	for (int i = 0; i < COUNT; i++)
		check("broadcast", seen[i], sent(ROOT, i));

	fill();
	OK(ncclAllGather(send, receive, COUNT, ncclInt32, comm, stream));
	look();
	for (int i = 0; i < N * COUNT; i++)
		check("all-gather", seen[i], sent(i / COUNT, i % COUNT));

	fill();
	OK(ncclGather(send, receive, COUNT, ncclInt32, ROOT, comm, stream));
	look();
	for (int i = 0; i < N * COUNT; i++)
		check("gather", seen[i], rank == ROOT ? sent(i / COUNT, i % COUNT) : 0);

	fill();
	OK(ncclScatter(send, receive, COUNT, ncclInt32, ROOT, comm, stream));
	look();
	for (int i = 0; i < COUNT; i++)
		check("scatter", seen[i], sent(ROOT, rank * COUNT + i));

	fill();
	OK(ncclAlltoAll(send, receive, COUNT, ncclInt32, comm, stream));
	look();
	for (int i = 0; i < N * COUNT; i++)
		check("all-to-all", seen[i], sent(i / COUNT, rank * COUNT + i % COUNT));
}

/* As bytes of the type: 0 to 3, and 6. */
static const struct type {
	ncclDataType_t type;
	size_t size;
	uint64_t numbers[7];
} types[] = {
	{ ncclInt8, 1, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclUint8, 1, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclInt32, 4, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclUint32, 4, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclInt64, 8, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclUint64, 8, { 0, 1, 2, 3, [6] = 6 } },
	{ ncclFloat16, 2, { 0, 0x3c00, 0x4000, 0x4200, [6] = 0x4600 } },
	{ ncclFloat32, 4, { 0, 0x3f800000, 0x40000000, 0x40400000, [6] = 0x40c00000 } },
	{ ncclFloat64, 8,
		{ 0, 0x3ff0000000000000, 0x4000000000000000,
			0x4008000000000000, [6] = 0x4018000000000000 } },
	{ ncclBfloat16, 2, { 0, 0x3f80, 0x4000, 0x4040, [6] = 0x40c0 } },
};

/* Of 1, 2, 3, by ncclRedOp_t. */
static const int results[] = { 6, 6, 3, 1, 2 };

static void reductions(void)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		for (int op = ncclSum; op <= ncclAvg; op++) {
			uint64_t number = 0;

			OK(cudaMemcpy(send, &types[i].numbers[rank + 1], types[i].size,
				cudaMemcpyHostToDevice));
			OK(ncclAllReduce(
				send, receive, 1, types[i].type, (ncclRedOp_t)op, comm, stream));
			OK(cudaStreamSynchronize(stream));
			OK(cudaMemcpy(&number, receive, types[i].size, cudaMemcpyDeviceToHost));
			check("reduced", number == types[i].numbers[results[op]], 1);
		}
}

/* A captured collective happens at each launch. */
static void graph(void)
{
	cudaGraph_t captured;
	cudaGraphExec_t graph;

	fill();
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(ncclAllReduce(send, send, 1, ncclInt32, ncclMax, comm, stream));
	OK(ncclAllReduce(send, receive, 1, ncclInt32, ncclSum, comm, stream));
	OK(cudaStreamEndCapture(stream, &captured));
	OK(cudaGraphInstantiate(&graph, captured, 0));
	for (int i = 0; i < 2; i++) {
		OK(cudaMemset(receive, 0, sizeof(int)));
		OK(cudaGraphLaunch(graph, stream));
		look();
		check("a graph", seen[0], N * sent(N - 1, 0));
	}
	OK(cudaGraphExecDestroy(graph));
	OK(cudaGraphDestroy(captured));
}

static void misuse(void)
{
	ncclUniqueId id;
	ncclComm_t twice[2];

	check("a root too far", ncclBcast(send, 1, ncclInt8, N, comm, stream), ncclInvalidArgument);
	check("no type", ncclAllGather(send, receive, 1, (ncclDataType_t)99, comm, stream),
		ncclInvalidArgument);
	check("a sum of 8 bits",
		ncclAllReduce(send, receive, 1, ncclFloat8e4m3, ncclSum, comm, stream),
		ncclInvalidUsage);
	check("nothing", ncclAllGather(NULL, NULL, 0, ncclInt8, comm, stream), ncclSuccess);
	check("nowhere", ncclAllGather(send, NULL, 1, ncclInt8, comm, stream), ncclInvalidArgument);
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRank(&twice[0], 2, id, 0));
	check("two ranks", ncclCommInitRank(&twice[1], 2, id, 1), ncclInvalidUsage);
	OK(ncclCommDestroy(twice[0]));
}

static void run(ncclUniqueId id)
{
	size_t before, after, total;
	ncclResult_t error;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc((void **)&send, sizeof seen));
	OK(cudaMalloc((void **)&receive, sizeof seen));
	OK(ncclCommInitRank(&comm, N, id, rank));
	OK(cudaMemGetInfo(&before, &total));
	collectives();
	OK(cudaMemGetInfo(&after, &total));
	check("it takes buffers", before - after >= (size_t)8 << 20, 1);
	reductions();
	graph();
	misuse();
	OK(ncclCommGetAsyncError(comm, &error));
	check("an error", error, ncclSuccess);
	if (rank == ROOT)
		_exit(0);
	OK(ncclAllReduce(send, receive, COUNT, ncclInt32, ncclSum, comm, stream));
	OK(cudaStreamSynchronize(stream));
	OK(ncclCommGetAsyncError(comm, &error));
	check("one is gone", error, ncclRemoteError);
	OK(ncclCommAbort(comm));
}

int main(void)
{
	ncclUniqueId id;
	int failed = 0;

	OK(ncclGetUniqueId(&id));
	for (rank = 0; rank < N; rank++)
		if (fork() == 0) {
			run(id);
			return 0;
		}
	for (int i = 0; i < N; i++) {
		int status;

		wait(&status);
		failed += status != 0;
	}
	printf("%d of %d failed\n", failed, N);
	return failed;
}
