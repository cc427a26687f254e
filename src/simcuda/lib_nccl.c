/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnccl: communicators whose collectives really exchange and reduce their ranks' data.
 *
 * Each rank is a process with its own simulated GPU.  A collective is a host function in its stream, which meets the
 * other ranks in shared memory (lib_nccl_ranks.c); with one rank it is a copy.  The first collective of several ranks
 * takes BUFFERS of device memory: those of two channels, the minimum of the real library.  NCCL prints the actual
 * number of channels only in its log.
 */
#include <nccl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "simcuda/lib_nccl.h"
#include "simcuda/standin.h"

#define VERSION 22809

/* Two channels of NCCL_BUFFSIZE bytes each; the default of NCCL_BUFFSIZE is 4 MiB. */
#define BUFFERS ((size_t)2 * (4 << 20))

const struct standin_library standin_library = {
	.name = "libnccl",
	.not_supported = ncclInvalidUsage,
	.not_initialized = ncclInvalidArgument,
	.failed = ncclUnhandledCudaError,
};

struct comm;

struct work {
	struct comm *comm;
	struct nccl_collective collective;
	bool is_captured; /* runs again at each launch of its graph; freed with the communicator */
	struct work *next;
};

/* `own` comes first, because a communicator is a handle of standin.h. */
struct comm {
	struct standin_handle own;
	int n, rank;
	struct nccl_ranks *ranks; /* NULL: a single rank */
	atomic_int error;         /* the first error of a collective, for ncclCommGetAsyncError */
	atomic_uint pending;
	struct work *captured;
};

static struct comm *of(ncclComm_t handle)
{
	struct comm *comm = (struct comm *)(void *)handle;

	return comm && comm->own.magic == STANDIN_MAGIC ? comm : NULL;
}

static void run(void *arg)
{
	struct work *work = arg;
	struct comm *comm = work->comm;
	ncclResult_t result = ncclSuccess;

	/* After an error the ranks may be at different collectives, so no further one runs. */
	if (atomic_load(&comm->error) == ncclSuccess)
		result = nccl_exchange(comm->ranks, &work->collective);
	if (result != ncclSuccess)
		atomic_store(&comm->error, result);
	if (work->is_captured)
		return;
	free(work);
	atomic_fetch_sub(&comm->pending, 1);
}

static ncclResult_t submit(
	struct comm *comm, const struct nccl_collective *collective, cudaStream_t stream)
{
	struct work *work = calloc(1, sizeof *work);
	ncclResult_t result;

	if (!work)
		return ncclSystemError;
	*work = (struct work){ .comm = comm, .collective = *collective };
	work->is_captured = standin_is_captured(stream);
	atomic_fetch_add(&comm->pending, !work->is_captured);
	comm->own.stream = stream;
	result = (ncclResult_t)standin_call(stream, run, work);
	if (result == ncclSuccess && work->is_captured) {
		work->next = comm->captured;
		comm->captured = work;
	} else if (result != ncclSuccess) {
		atomic_fetch_sub(&comm->pending, !work->is_captured);
		free(work);
	}
	return result;
}

/* With one rank every collective is a copy. */
static ncclResult_t copy(const struct nccl_collective *collective, cudaStream_t stream)
{
	const struct standin_handle work = { .magic = STANDIN_MAGIC, .stream = stream };

	if (collective->send == collective->receive)
		return (ncclResult_t)standin_work(&work);
	return (ncclResult_t)standin_copy(
		stream, collective->receive, collective->send, collective->size);
}

static ncclResult_t collect(
	ncclComm_t handle, struct nccl_collective collective, size_t count, cudaStream_t stream)
{
	const struct nccl_shape shape = collective.shape;
	struct comm *comm = of(handle);
	bool gives = comm && (!shape.from_root || comm->rank == collective.root);
	bool takes = comm && (!shape.to_root || comm->rank == collective.root);

	if (!comm || (count && gives && !collective.send) ||
		(count && takes && !collective.receive) || collective.root < 0 ||
		collective.root >= comm->n || collective.op > ncclAvg ||
		!nccl_bytes_of(collective.type))
		return ncclInvalidArgument;
	if (!count)
		return ncclSuccess;
	collective.size = count * nccl_bytes_of(collective.type);
	if (!comm->ranks)
		return copy(&collective, stream);
	if (shape.reduces && !nccl_reduce(collective.type, collective.op, NULL, NULL, 0))
		return (ncclResult_t)standin_not_supported("a reduction of this type");
	if (!comm->own.taken && !standin_take(&comm->own, BUFFERS))
		return ncclUnhandledCudaError;
	return submit(comm, &collective, stream);
}

#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int *version)
{
	*version = VERSION;
	return ncclSuccess;
}

/* The id is the name of a file: see lib_nccl.h. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	uint64_t random[2];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return ncclSystemError;
	memset(id, 0, sizeof *id);
	snprintf(id->internal, sizeof id->internal, "gpusim-nccl-%016llx%016llx",
		(unsigned long long)random[0], (unsigned long long)random[1]);
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess           ? "no error"
	       : result == ncclInvalidUsage    ? "invalid usage (or not in the simulated libnccl)"
	       : result == ncclInvalidArgument ? "invalid argument"
	       : result == ncclUnhandledCudaError ? "unhandled cuda error"
	       : result == ncclRemoteError        ? "remote process exited"
	       : result == ncclSystemError        ? "unhandled system error"
						  : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
	return "";
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	ncclResult_t result = ncclSuccess;
	struct comm *made;

	if (!comm || n < 1 || rank < 0 || rank >= n || !memchr(id.internal, 0, sizeof id.internal))
		return ncclInvalidArgument;
	made = standin_create(sizeof *made);
	if (!made)
		return ncclSystemError;
	made->n = n;
	made->rank = rank;
	if (n > 1)
		made->ranks = nccl_join(id.internal, n, rank, &result);
	if (result == ncclSuccess)
		*comm = (ncclComm_t)(void *)made;
	else
		standin_destroy(made);
	return result;
}

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	return ncclCommInitRank(comm, n, id, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return of(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* Does not free a communicator that a collective in its stream still uses. */
ncclResult_t ncclCommDestroy(ncclComm_t handle)
{
	struct comm *comm = of(handle);

	if (!comm)
		return ncclInvalidArgument;
	if (atomic_load(&comm->pending))
		standin_wait(comm->own.stream);
	if (atomic_load(&comm->pending))
		return ncclSuccess;
	while (comm->captured) {
		struct work *work = comm->captured;

		comm->captured = work->next;
		free(work);
	}
	if (comm->ranks)
		nccl_leave(comm->ranks);
	standin_destroy(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle)
{
	struct comm *comm = of(handle);

	if (comm && comm->ranks)
		nccl_abort(comm->ranks);
	return ncclCommDestroy(handle);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	if (of(comm))
		*error = (ncclResult_t)atomic_load(&of(comm)->error);
	return ncclCommFinalize(comm);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	if (of(comm))
		*count = of(comm)->n;
	return ncclCommFinalize(comm);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	if (of(comm))
		*rank = of(comm)->rank;
	return ncclCommFinalize(comm);
}

/* Takes no device memory: the buffer to register is the caller's. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle)
{
	if (!of(comm) || !buffer || !size)
		return ncclInvalidArgument;
	*handle = buffer;
	return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return of(comm) && handle ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclGroupStart(void)
{
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	return ncclSuccess;
}

/* Submits a collective with the parameters send, receive, type, count, comm and stream of the function around it. */
#define COLLECT(shape_, op_, root_)                        \
	collect(comm,                                      \
		(struct nccl_collective){ .shape = shape_, \
			.send = send,                      \
			.receive = receive,                \
			.type = type,                      \
			.op = op_,                         \
			.root = root_ },                   \
		count, stream)
#define SHAPE(...) ((struct nccl_shape){ __VA_ARGS__ })

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.reduces = true), op, 0);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.reduces = true, .to_root = true), op, root);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.scatters = true, .reduces = true), op, 0);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.from_root = true), ncclSum, root);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
	cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(0), ncclSum, 0);
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.scatters = true), ncclSum, 0);
}

ncclResult_t ncclGather(const void *send, void *receive, size_t count, ncclDataType_t type,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.to_root = true), ncclSum, root);
}

ncclResult_t ncclScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	return COLLECT(SHAPE(.scatters = true, .from_root = true), ncclSum, root);
}

#pragma GCC visibility pop
