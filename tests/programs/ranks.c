/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ranks with a simulated GPU each: every collective of the simulated NCCL, messages, groups, splits.  Compares what
 * they receive with what was sent.
 *
 *   ranks            a process each; at the end one leaves without notice, and the others must get an error
 *   ranks threads    a thread each, of one process
 *   ranks together   one thread, which groups the calls of all ranks
 */
#include <pthread.h>
#include <stdbool.h>
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

struct rank {
	int number;
	ncclComm_t comm;
	cudaStream_t stream;
	int *send, *receive; /* N * COUNT each, on the device */
};

/* The ranks of this thread. */
static _Thread_local struct rank here[N];
static _Thread_local int n_here;
static _Thread_local int *seen; /* N * COUNT */

static bool is_alone; /* the ranks are processes: a rank's messages need no group */

#define EACH(r) (struct rank *r = here; r < here + n_here; r++)

static void check(const char *what, long is, long should)
{
	if (is == should)
		return;
	printf("rank %d: %s: %ld, not %ld\n", n_here ? here[0].number : -1, what, is, should);
	fflush(stdout);
	_exit(1);
}

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

static void use(const struct rank *r)
{
	OK(cudaSetDevice(is_alone ? 0 : r->number));
}

static void fill(const struct rank *r)
{
	use(r);
	for (int i = 0; i < N * COUNT; i++)
		seen[i] = sent(r->number, i);
	OK(cudaMemcpy(r->send, seen, N * COUNT * sizeof *seen, cudaMemcpyHostToDevice));
	OK(cudaMemset(r->receive, 0, N * COUNT * sizeof *seen));
}

static void look(const struct rank *r)
{
	use(r);
	OK(cudaStreamSynchronize(r->stream));
	OK(cudaMemcpy(seen, r->receive, N * COUNT * sizeof *seen, cudaMemcpyDeviceToHost));
}

/* ---- what a rank calls, and what it should have received then ---- */

static ncclResult_t all_reduce(const struct rank *r)
{
	return ncclAllReduce(r->send, r->receive, COUNT, ncclInt32, ncclSum, r->comm, r->stream);
}

static int all_reduced(int rank, int i)
{
	(void)rank;
	return i < COUNT ? sum(i) : 0;
}

static ncclResult_t reduce(const struct rank *r)
{
	return ncclReduce(r->send, r->receive, COUNT, ncclInt32, ncclSum, ROOT, r->comm, r->stream);
}

static int reduced(int rank, int i)
{
	return rank == ROOT && i < COUNT ? sum(i) : 0;
}

static ncclResult_t reduce_scatter(const struct rank *r)
{
	return ncclReduceScatter(
		r->send, r->receive, COUNT, ncclInt32, ncclSum, r->comm, r->stream);
}

static int reduce_scattered(int rank, int i)
{
	return i < COUNT ? sum(rank * COUNT + i) : 0;
}

static ncclResult_t broadcast(const struct rank *r)
{
	return ncclBroadcast(r->send, r->receive, COUNT, ncclInt32, ROOT, r->comm, r->stream);
}

static int broadcasted(int rank, int i)
{
	(void)rank;
	return i < COUNT ? sent(ROOT, i) : 0;
}

static ncclResult_t all_gather(const struct rank *r)
{
	return ncclAllGather(r->send, r->receive, COUNT, ncclInt32, r->comm, r->stream);
}

static int all_gathered(int rank, int i)
{
	(void)rank;
	return sent(i / COUNT, i % COUNT);
}

static ncclResult_t gather(const struct rank *r)
{
	return ncclGather(r->send, r->receive, COUNT, ncclInt32, ROOT, r->comm, r->stream);
}

static int gathered(int rank, int i)
{
	return rank == ROOT ? all_gathered(rank, i) : 0;
}

static ncclResult_t scatter(const struct rank *r)
{
	return ncclScatter(r->send, r->receive, COUNT, ncclInt32, ROOT, r->comm, r->stream);
}

static int scattered(int rank, int i)
{
	return i < COUNT ? sent(ROOT, rank * COUNT + i) : 0;
}

static ncclResult_t all_to_all(const struct rank *r)
{
	return ncclAlltoAll(r->send, r->receive, COUNT, ncclInt32, r->comm, r->stream);
}

static int all_to_alled(int rank, int i)
{
	return sent(i / COUNT, rank * COUNT + i % COUNT);
}

/* The same, by messages: also to itself. */
static ncclResult_t messages(const struct rank *r)
{
	ncclResult_t result = ncclGroupStart();

	for (int other = 0; other < N && result == ncclSuccess; other++) {
		result = ncclRecv(r->receive + (size_t)other * COUNT, COUNT, ncclInt32, other,
			r->comm, r->stream);
		if (result == ncclSuccess)
			result = ncclSend(r->send + (size_t)other * COUNT, COUNT, ncclInt32, other,
				r->comm, r->stream);
	}
	return result == ncclSuccess ? ncclGroupEnd() : result;
}

/* Two collectives in a group, of which the second adds up what the first brought. */
static ncclResult_t two(const struct rank *r)
{
	ncclResult_t result = ncclGroupStart();

	if (result == ncclSuccess)
		result = ncclBroadcast(
			r->send, r->receive, COUNT, ncclInt32, ROOT, r->comm, r->stream);
	if (result == ncclSuccess)
		result = ncclAllReduce(
			r->receive, r->receive, COUNT, ncclInt32, ncclSum, r->comm, r->stream);
	return result == ncclSuccess ? ncclGroupEnd() : result;
}

static int twice(int rank, int i)
{
	(void)rank;
	return i < COUNT ? N * sent(ROOT, i) : 0;
}

/* Doubled, and then added. */
static ncclResult_t scaled_sum(const struct rank *r)
{
	ncclRedOp_t op;
	int32_t by = 2;
	ncclResult_t result =
		ncclRedOpCreatePreMulSum(&op, &by, ncclInt32, ncclScalarHostImmediate, r->comm);

	if (result == ncclSuccess)
		result = ncclAllReduce(
			r->send, r->receive, COUNT, ncclInt32, op, r->comm, r->stream);
	return result == ncclSuccess ? ncclRedOpDestroy(op, r->comm) : result;
}

static int scaled(int rank, int i)
{
	(void)rank;
	return i < COUNT ? 2 * sum(i) : 0;
}

static const struct row {
	const char *name;
	ncclResult_t (*call)(const struct rank *r);
	int (*should)(int rank, int i);
	bool is_of_processes; /* threads exchange no messages */
} rows[] = {
	{ "all-reduce", all_reduce, all_reduced, false },
	{ "reduce", reduce, reduced, false },
	{ "reduce-scatter", reduce_scatter, reduce_scattered, false },
	{ "broadcast", broadcast, broadcasted, false },
	{ "all-gather", all_gather, all_gathered, false },
	{ "gather", gather, gathered, false },
	{ "scatter", scatter, scattered, false },
	{ "all-to-all", all_to_all, all_to_alled, false },
	{ "messages", messages, all_to_alled, true },
	{ "two in a group", two, twice, false },
	{ "a scaled sum", scaled_sum, scaled, false },
};

static void make_calls(const struct row *row)
{
	if (n_here > 1)
		OK(ncclGroupStart());
	for
		EACH(r)
	check(row->name, row->call(r), ncclSuccess);
	if (n_here > 1)
		OK(ncclGroupEnd());
}

static void collectives(bool is_threads)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (is_threads && rows[i].is_of_processes)
			continue;
		for
			EACH(r)
		fill(r);
		make_calls(&rows[i]);
		for
			EACH(r)
			{
				look(r);
				for (int k = 0; k < N * COUNT; k++)
					check(rows[i].name, seen[k], rows[i].should(r->number, k));
			}
	}
}

/* The even ranks, the last one first; the odd rank is in no group. */
static void splits(void)
{
	ncclComm_t parts[N];
	struct rank whole[N];

	if (n_here > 1)
		OK(ncclGroupStart());
	for
		EACH(r)
	OK(ncclCommSplit(r->comm, r->number % 2 ? NCCL_SPLIT_NOCOLOR : 7, -r->number,
		&parts[r - here], NULL));
	if (n_here > 1)
		OK(ncclGroupEnd());
	memcpy(whole, here, sizeof whole);
	for
		EACH(r)
		{
			int n = 0;
			int rank = -1;

			check("a part", parts[r - here] == NULL, r->number % 2);
			if (!parts[r - here])
				continue;
			r->comm = parts[r - here];
			OK(ncclCommCount(r->comm, &n));
			OK(ncclCommUserRank(r->comm, &rank));
			check("its ranks", n, N / 2 + 1);
			check("its rank", rank, r->number == 0);
			fill(r);
		}
	if (n_here > 1)
		OK(ncclGroupStart());
	for
		EACH(r)
	if (parts[r - here])
		OK(all_reduce(r));
	if (n_here > 1)
		OK(ncclGroupEnd());
	for
		EACH(r)
		{
			if (!parts[r - here])
				continue;
			look(r);
			check("the sum of a part", seen[1], sent(0, 1) + sent(2, 1));
			OK(ncclCommDestroy(r->comm));
		}
	memcpy(here, whole, sizeof whole);
}

/* A rank sends on what it receives; nothing is grouped. */
static void chain(void)
{
	struct rank *r = here;

	fill(r);
	if (r->number > 0)
		OK(ncclRecv(r->send, COUNT, ncclInt32, r->number - 1, r->comm, r->stream));
	if (r->number < N - 1)
		OK(ncclSend(r->send, COUNT, ncclInt32, r->number + 1, r->comm, r->stream));
	OK(cudaStreamSynchronize(r->stream));
	OK(cudaMemcpy(seen, r->send, COUNT * sizeof *seen, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		check("a chain", seen[i], sent(0, i));
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
	struct rank *r = here;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		for (int op = ncclSum; op <= ncclAvg; op++) {
			uint64_t number = 0;

			OK(cudaMemcpy(r->send, &types[i].numbers[r->number + 1], types[i].size,
				cudaMemcpyHostToDevice));
			OK(ncclAllReduce(r->send, r->receive, 1, types[i].type, (ncclRedOp_t)op,
				r->comm, r->stream));
			OK(cudaStreamSynchronize(r->stream));
			OK(cudaMemcpy(&number, r->receive, types[i].size, cudaMemcpyDeviceToHost));
			check("reduced", number == types[i].numbers[results[op]], 1);
		}
}

/* A captured collective happens at each launch. */
static void graph(void)
{
	struct rank *r = here;
	cudaGraph_t captured;
	cudaGraphExec_t graph;

	fill(r);
	OK(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
	OK(ncclAllReduce(r->send, r->send, 1, ncclInt32, ncclMax, r->comm, r->stream));
	OK(ncclAllReduce(r->send, r->receive, 1, ncclInt32, ncclSum, r->comm, r->stream));
	OK(cudaStreamEndCapture(r->stream, &captured));
	OK(cudaGraphInstantiate(&graph, captured, 0));
	for (int i = 0; i < 2; i++) {
		OK(cudaMemset(r->receive, 0, sizeof(int)));
		OK(cudaGraphLaunch(graph, r->stream));
		look(r);
		check("a graph", seen[0], N * sent(N - 1, 0));
	}
	OK(cudaGraphExecDestroy(graph));
	OK(cudaGraphDestroy(captured));
}

static void misuse(void)
{
	struct rank *r = here;
	ncclRedOp_t none = (ncclRedOp_t)(ncclAvg + 1);
	ncclComm_t alone, part;
	ncclUniqueId id;

	check("a root too far", ncclBcast(r->send, 1, ncclInt8, N, r->comm, r->stream),
		ncclInvalidArgument);
	check("no type",
		ncclAllGather(r->send, r->receive, 1, (ncclDataType_t)99, r->comm, r->stream),
		ncclInvalidArgument);
	check("a sum of 8 bits",
		ncclAllReduce(r->send, r->receive, 1, ncclFloat8e4m3, ncclSum, r->comm, r->stream),
		ncclInvalidUsage);
	check("no operator",
		ncclAllReduce(r->send, r->receive, 1, ncclInt8, none, r->comm, r->stream),
		ncclInvalidArgument);
	check("nothing", ncclAllGather(NULL, NULL, 0, ncclInt8, r->comm, r->stream), ncclSuccess);
	check("nowhere", ncclAllGather(r->send, NULL, 1, ncclInt8, r->comm, r->stream),
		ncclInvalidArgument);
	check("to nobody", ncclSend(r->send, 1, ncclInt8, N, r->comm, r->stream),
		ncclInvalidArgument);
	check("an end without a start", ncclGroupEnd(), ncclInvalidUsage);
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRankScalable(&alone, 1, 0, 1, &id, NULL));
	OK(ncclCommSplit(alone, 0, 0, &part, NULL));
	check("from nobody", ncclRecv(r->receive, 1, ncclInt8, 0, part, r->stream),
		ncclInvalidUsage);
	OK(ncclCommDestroy(part));
	OK(ncclCommDestroy(alone));
}

static void make(struct rank *r, int number)
{
	r->number = number;
	use(r);
	OK(cudaStreamCreate(&r->stream));
	OK(cudaMalloc((void **)&r->send, N * COUNT * sizeof(int)));
	OK(cudaMalloc((void **)&r->receive, N * COUNT * sizeof(int)));
}

static void begin(int n)
{
	n_here = n;
	seen = malloc(N * COUNT * sizeof *seen);
	check("memory", seen != NULL, 1);
}

/* ---- processes ---- */

static void run_process(ncclUniqueId id, int number)
{
	size_t before, after, total;
	ncclResult_t error;
	struct rank *r = here;

	is_alone = true;
	begin(1);
	make(r, number);
	OK(ncclCommInitRank(&r->comm, N, id, number));
	OK(cudaMemGetInfo(&before, &total));
	collectives(false);
	OK(cudaMemGetInfo(&after, &total));
	check("it takes buffers", before - after >= (size_t)8 << 20, 1);
	splits();
	chain();
	reductions();
	graph();
	misuse();
	OK(ncclCommGetAsyncError(r->comm, &error));
	check("an error", error, ncclSuccess);
	if (number == ROOT)
		_exit(0);
	OK(all_reduce(r));
	OK(cudaStreamSynchronize(r->stream));
	OK(ncclCommGetAsyncError(r->comm, &error));
	check("one is gone", error, ncclRemoteError);
	OK(ncclCommAbort(r->comm));
}

static int run_processes(void)
{
	ncclUniqueId id;
	int failed = 0;

	OK(ncclGetUniqueId(&id));
	for (int i = 0; i < N; i++)
		if (fork() == 0) {
			run_process(id, i);
			_exit(0);
		}
	for (int i = 0; i < N; i++) {
		int status;

		wait(&status);
		failed += status != 0;
	}
	return failed;
}

/* ---- one process ---- */

static ncclUniqueId of_threads;

static void *run_thread(void *number)
{
	begin(1);
	make(here, *(int *)number);
	OK(ncclCommInitRank(&here->comm, N, of_threads, here->number));
	collectives(true);
	splits();
	OK(ncclCommDestroy(here->comm));
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[N];
	int numbers[N];

	OK(ncclGetUniqueId(&of_threads));
	for (int i = 0; i < N; i++) {
		numbers[i] = i;
		OK(pthread_create(&threads[i], NULL, run_thread, &numbers[i]));
	}
	for (int i = 0; i < N; i++)
		OK(pthread_join(threads[i], NULL));
	return 0;
}

static int run_together(void)
{
	ncclComm_t comms[N];

	begin(N);
	OK(ncclCommInitAll(comms, N, NULL));
	for (int i = 0; i < N; i++) {
		make(&here[i], i);
		here[i].comm = comms[i];
	}
	collectives(false);
	splits();
	for
		EACH(r)
	OK(ncclCommDestroy(r->comm));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int failed = strcmp(mode, "threads") == 0    ? run_threads()
		     : strcmp(mode, "together") == 0 ? run_together()
						     : run_processes();

	printf("%d of %d failed\n", failed, N);
	return failed;
}
