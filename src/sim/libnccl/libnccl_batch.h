/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of NCCL's calls: those between ncclGroupStart and ncclGroupEnd, or one call outside.
 *
 * A batch first makes the communicators of its calls, for which it waits for the other ranks, and is then one host
 * function, at which all its streams meet:
 *
 *      sends, none of which waits  -->  collectives, in the order of the calls  -->  receipts
 *
 * A collective needs all ranks of this process at once (libnccl.h).  If several threads have them, each waits in its
 * call for the last one, which submits the batches of all.
 *
 * Threads     Any, as NCCL.
 * Failure     NCCL's results; those of a host function are the error of its communicators, which then do no more work.
 * Limits      A rank carries out its batches one after another, whatever their streams.  A program of which that makes
 *             the ranks wait for each other in a circle does not end, though on GPUs its streams may run at the same time.
 *             Threads of one process exchange no messages, and group their collectives alike.
 */
#ifndef SIMCUDA_LIB_NCCL_BATCH_H
#define SIMCUDA_LIB_NCCL_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/libnccl/libnccl.h"
#include "sim/standin/standin.h"

/* Operators of ncclRedOpCreatePreMulSum, of one communicator. */
#define NCCL_MAX_SCALES 64

struct nccl_scale_op {
	bool is_used;
	const void *at; /* on the device, read when the collective runs; NULL: `value` */
	uint64_t value;
};

struct nccl_batch;

/* `own` comes first, because a communicator is a handle of standin.h. */
struct nccl_comm {
	struct standin_handle own;
	struct CUctx_st *context; /* that it was made in */
	int n, rank;
	char name[NCCL_NAME];
	struct nccl_ranks *ranks; /* NULL: a single rank, which has sent no message */
	struct nccl_scale_op scales[NCCL_MAX_SCALES];
	atomic_int error; /* the first error of a batch, for ncclCommGetAsyncError */
	atomic_uint pending;
	struct nccl_batch *captured;
};

enum nccl_task_kind {
	NCCL_SEND,
	NCCL_COLLECTIVE,
	NCCL_RECEIPT,
	NCCL_JOIN, /* the other ranks of a new communicator are waited for */
	NCCL_SPLIT
};

struct nccl_task {
	enum nccl_task_kind kind;
	struct nccl_comm *comm;
	struct CUstream_st *stream;
	struct nccl_collective data; /* of a message: its bytes, and the other rank as root */
	struct nccl_split split;
	ncclComm_t *ret_comm; /* of a split */
	bool is_done;         /* in this run of the batch */
	struct nccl_task *next;
};

/* Joins a communicator in the current context.  NULL: *ret_result is the error. */
struct nccl_comm *nccl_comm_create(const char *name, int n, int rank, ncclResult_t *ret_result);

/* Adds a copy of the task to the thread's group, or carries it out. */
ncclResult_t nccl_add(const struct nccl_task *task);

ncclResult_t nccl_group_start(void);
ncclResult_t nccl_group_end(void);

/* Frees a list of captured batches; NULL: none. */
void nccl_batch_free(struct nccl_batch *batch);

#endif
