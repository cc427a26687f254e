/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnccl: communicators of one rank, in which every collective is a copy to where its result belongs.
 *
 * More ranks are several simulated GPUs that know nothing of each other's memory, and are refused.  The buffers that
 * a communicator takes for itself are not modelled: NCCL says how many channels it opens to its log only.  For one rank
 * it opens none.
 */
#include <nccl.h>
#include <string.h>

#include "simcuda/standin.h"

#define VERSION 22809

const struct standin_library standin_library = {
	.name = "libnccl",
	.not_supported = ncclInvalidUsage,
	.not_initialized = ncclInvalidArgument,
	.failed = ncclUnhandledCudaError,
};

static struct standin_handle *of(ncclComm_t comm)
{
	struct standin_handle *own = (struct standin_handle *)(void *)comm;

	return own && own->magic == STANDIN_MAGIC ? own : NULL;
}

/* By ncclDataType_t; what comes after them is of one byte. */
static size_t bytes_of(ncclDataType_t type)
{
	static const unsigned char bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return (size_t)type < sizeof bytes ? bytes[type] : 1;
}

static ncclResult_t collective(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclComm_t comm, cudaStream_t stream)
{
	const struct standin_handle work = { .magic = STANDIN_MAGIC, .stream = stream };

	if (!of(comm) || !send || !receive)
		return ncclInvalidArgument;
	if (send == receive)
		return (ncclResult_t)standin_work(&work);
	return (ncclResult_t)standin_copy(stream, receive, send, count * bytes_of(type));
}

#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int *version)
{
	*version = VERSION;
	return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0, sizeof *id);
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess        ? "no error"
	       : result == ncclInvalidUsage ? "invalid usage (the simulated libnccl has one rank)"
	       : result == ncclInvalidArgument    ? "invalid argument"
	       : result == ncclUnhandledCudaError ? "unhandled cuda error"
						  : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return "";
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	(void)id;
	if (!comm || n < 1 || rank < 0 || rank >= n)
		return ncclInvalidArgument;
	if (n > 1)
		return (ncclResult_t)standin_not_supported("a communicator of several ranks");
	*comm = standin_create(sizeof(struct standin_handle));
	return *comm ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	(void)config;
	return ncclCommInitRank(comm, n, id, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return of(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	return standin_destroy(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	*error = ncclSuccess;
	return ncclCommFinalize(comm);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	*count = 1;
	return ncclCommFinalize(comm);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	*rank = 0;
	return ncclCommFinalize(comm);
}

/* What is registered is the caller's: nothing is taken for it. */
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

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	(void)op;
	return collective(send, receive, count, type, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	return root ? ncclInvalidArgument : collective(send, receive, count, type, comm, stream);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
	cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclComm_t comm, cudaStream_t stream)
{
	return collective(send, receive, count, type, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	(void)op;
	return collective(send, receive, count, type, comm, stream);
}

#pragma GCC visibility pop
