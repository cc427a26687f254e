/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnccl: communicators whose collectives and messages really exchange and reduce their ranks' data
 * (libnccl_batch.h, libnccl.h).  With one rank a collective is a copy.
 *
 * The first work of a communicator takes device memory: the buffers of two channels, the minimum of the real library.
 * NCCL prints the actual number of channels only in its log.
 */
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "sim/libnccl/libnccl_batch.h"

#define VERSION 22809

/* Operators of ncclRedOpCreatePreMulSum have the numbers behind NCCL's own. */
#define FIRST_SCALE (ncclAvg + 1)

const struct standin_library standin_library = {
	.name = "libnccl",
	.not_supported = ncclInvalidUsage,
	.not_initialized = ncclInvalidArgument,
	.failed = ncclUnhandledCudaError,
};

static struct nccl_comm *of(ncclComm_t handle)
{
	struct nccl_comm *comm = (struct nccl_comm *)(void *)handle;

	return comm && comm->own.magic == STANDIN_MAGIC ? comm : NULL;
}

/* With one rank every collective is a copy. */
static ncclResult_t copy(const struct nccl_collective *data, cudaStream_t stream)
{
	const struct standin_handle work = { .magic = STANDIN_MAGIC, .stream = stream };

	if (data->send == data->receive)
		return (ncclResult_t)standin_work(&work);
	return (ncclResult_t)standin_copy(stream, data->receive, data->send, data->size);
}

/* Replaces an operator of ncclRedOpCreatePreMulSum by a sum of scaled data.  False: there is none of this number. */
static bool resolve(const struct nccl_comm *comm, struct nccl_collective *data)
{
	int i = (int)data->op - FIRST_SCALE;

	if (i < 0)
		return true;
	if (i >= NCCL_MAX_SCALES || !comm->scales[i].is_used)
		return false;
	data->op = ncclSum;
	data->scale = comm->scales[i].at ? comm->scales[i].at : &comm->scales[i].value;
	return true;
}

static ncclResult_t collect(
	ncclComm_t handle, struct nccl_collective data, size_t count, cudaStream_t stream)
{
	const struct nccl_shape shape = data.shape;
	struct nccl_comm *comm = of(handle);
	bool gives = comm && (!shape.from_root || comm->rank == data.root);
	bool takes = comm && (!shape.to_root || comm->rank == data.root);

	if (!comm || (count && gives && !data.send) || (count && takes && !data.receive) ||
		data.root < 0 || data.root >= comm->n || !resolve(comm, &data) ||
		!nccl_bytes_of(data.type))
		return ncclInvalidArgument;
	if (!count)
		return ncclSuccess;
	data.rank = comm->rank;
	data.size = count * nccl_bytes_of(data.type);
	if (comm->n == 1)
		return copy(&data, stream);
	if (shape.reduces && !nccl_reduce(data.type, data.op, NULL, NULL, 0))
		return (ncclResult_t)standin_not_supported("a reduction of this type");
	return nccl_add(&(struct nccl_task){
		.kind = NCCL_COLLECTIVE, .comm = comm, .stream = stream, .data = data });
}

static ncclResult_t message(enum nccl_task_kind kind, ncclComm_t handle,
	struct nccl_collective data, size_t count, cudaStream_t stream)
{
	struct nccl_comm *comm = of(handle);
	ncclResult_t result = ncclSuccess;

	if (!comm || (count && !data.send && !data.receive) || data.root < 0 ||
		data.root >= comm->n || !nccl_bytes_of(data.type))
		return ncclInvalidArgument;
	if (!count)
		return ncclSuccess;
	if (!comm->ranks)
		comm->ranks = nccl_join(comm->name, 1, 0, &result);
	if (result != ncclSuccess)
		return result;
	data.rank = comm->rank;
	data.size = count * nccl_bytes_of(data.type);
	return nccl_add(
		&(struct nccl_task){ .kind = kind, .comm = comm, .stream = stream, .data = data });
}

static ncclResult_t init(ncclComm_t *ret_comm, int n, const ncclUniqueId *id, int rank)
{
	ncclResult_t result;
	struct nccl_comm *made;

	if (!ret_comm || n < 1 || rank < 0 || rank >= n ||
		!memchr(id->internal, 0, sizeof id->internal))
		return ncclInvalidArgument;
	made = nccl_comm_create(id->internal, n, rank, &result);
	if (!made)
		return result;
	*ret_comm = (ncclComm_t)(void *)made;
	return nccl_add(&(struct nccl_task){ .kind = NCCL_JOIN, .comm = made });
}

#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int *version)
{
	*version = VERSION;
	return ncclSuccess;
}

/* The id is the name of a file: see libnccl.h. */
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
	return init(comm, n, &id, rank);
}

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	return init(comm, n, &id, rank);
}

/* All ranks have all ids: the first one will do. */
ncclResult_t ncclCommInitRankScalable(
	ncclComm_t *comm, int n, int rank, int n_ids, ncclUniqueId *ids, ncclConfig_t *config)
{
	return ids && n_ids > 0 ? init(comm, n, ids, rank) : ncclInvalidArgument;
}

/* Without a list, of the first n devices. */
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
	ncclResult_t result, ended;
	ncclUniqueId id;

	if (!comms || n < 1)
		return ncclInvalidArgument;
	result = ncclGetUniqueId(&id);
	if (result == ncclSuccess)
		result = ncclGroupStart();
	for (int i = 0; i < n && result == ncclSuccess; i++) {
		struct CUctx_st *context = standin_primary(devices ? devices[i] : i);

		if (!context || !standin_enter(context)) {
			result = ncclInvalidArgument;
			break;
		}
		result = init(&comms[i], n, &id, i);
		standin_exit();
	}
	ended = ncclGroupEnd();
	return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclCommSplit(
	ncclComm_t handle, int color, int key, ncclComm_t *ret_comm, ncclConfig_t *config)
{
	struct nccl_comm *comm = of(handle);
	struct nccl_task task = { .kind = NCCL_SPLIT, .comm = comm, .ret_comm = ret_comm };

	if (!comm || !ret_comm || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
		return ncclInvalidArgument;
	task.split = (struct nccl_split){
		.rank = comm->rank, .color = color, .key = key, .new_n = color >= 0
	};
	return nccl_add(&task);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return of(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* Does not free a communicator that a batch in its stream still uses. */
ncclResult_t ncclCommDestroy(ncclComm_t handle)
{
	struct nccl_comm *comm = of(handle);

	if (!comm)
		return ncclInvalidArgument;
	if (atomic_load(&comm->pending))
		standin_wait(&(struct standin_place){ comm->context, comm->own.stream });
	if (atomic_load(&comm->pending))
		return ncclSuccess;
	nccl_batch_free(comm->captured);
	if (comm->ranks)
		nccl_leave(comm->ranks, comm->rank);
	standin_destroy(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle)
{
	struct nccl_comm *comm = of(handle);

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
	return nccl_group_start();
}

ncclResult_t ncclGroupEnd(void)
{
	return nccl_group_end();
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
	cudaStream_t stream)
{
	return message(NCCL_SEND, comm,
		(struct nccl_collective){ .send = send, .type = type, .root = to }, count, stream);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
	cudaStream_t stream)
{
	return message(NCCL_RECEIPT, comm,
		(struct nccl_collective){ .receive = receive, .type = type, .root = from }, count,
		stream);
}

/* The scalar is read now, or, on the device, when a collective runs. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
	ncclScalarResidence_t residence, ncclComm_t handle)
{
	struct nccl_comm *comm = of(handle);
	int i = 0;

	if (!comm || !op || !scalar || !nccl_bytes_of(type))
		return ncclInvalidArgument;
	while (i < NCCL_MAX_SCALES && comm->scales[i].is_used)
		i++;
	if (i == NCCL_MAX_SCALES)
		return ncclSystemError;
	comm->scales[i] = (struct nccl_scale_op){ .is_used = true };
	if (residence == ncclScalarDevice)
		comm->scales[i].at = scalar;
	else
		memcpy(&comm->scales[i].value, scalar, nccl_bytes_of(type));
	*op = (ncclRedOp_t)(FIRST_SCALE + i);
	return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle)
{
	struct nccl_comm *comm = of(handle);
	int i = (int)op - FIRST_SCALE;

	if (!comm || i < 0 || i >= NCCL_MAX_SCALES || !comm->scales[i].is_used)
		return ncclInvalidArgument;
	comm->scales[i].is_used = false;
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
