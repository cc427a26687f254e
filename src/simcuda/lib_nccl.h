/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a communicator exchange bytes: processes of one machine, over a shared-memory file named after the
 * communicator's unique id.
 *
 *      header | chunk of rank 0 | chunk of rank 1 | ...
 *
 * A collective proceeds in chunks: each rank copies its chunk into the file, all ranks meet, each rank takes its part
 * of every chunk, and all meet again.
 *
 * Threads     nccl_exchange: one at a time per communicator.  nccl_leave: only while no nccl_exchange runs.
 * Failure     If a rank leaves or dies, the exchanges of all others fail; nccl_abort makes those of its own rank fail.
 * Limits      One rank per process: a rank waits for the others in a host function, and the simulated GPU of a process
 *             runs one host function at a time.
 */
#ifndef SIMCUDA_LIB_NCCL_H
#define SIMCUDA_LIB_NCCL_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

/* How a collective moves units; a unit is the `size` bytes of the call's count of elements. */
struct nccl_shape {
	bool scatters;  /* a rank sends one unit to each rank; else it sends the same unit to all */
	bool reduces;   /* a rank reduces the units it receives to one; else it concatenates them */
	bool from_root; /* only the root sends */
	bool to_root;   /* only the root receives */
};

struct nccl_collective {
	struct nccl_shape shape;
	const char *send; /* this and `receive` are device addresses */
	char *receive;
	size_t size;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
};

struct nccl_ranks;

/* Joins without waiting for the other ranks.  `name` is a file name without '/'.  NULL: *ret_result is the error. */
struct nccl_ranks *nccl_join(const char *name, int n, int rank, ncclResult_t *ret_result);
void nccl_leave(struct nccl_ranks *ranks);

/* Performs the collective.  Call from a host function of the stream.  ncclRemoteError if another rank is gone. */
ncclResult_t nccl_exchange(struct nccl_ranks *ranks, const struct nccl_collective *collective);

/* Makes the exchange that waits for other ranks fail, and every later one that would have to wait. */
void nccl_abort(struct nccl_ranks *ranks);

/* Bytes per element; 0: unknown type. */
size_t nccl_bytes_of(ncclDataType_t type);

/* Sets to[i] = to[i] op from[i] in `size` bytes.  False: not supported for this type. */
bool nccl_reduce(ncclDataType_t type, ncclRedOp_t op, void *to, const void *from, size_t size);

/* Divides the elements in `size` bytes by `by`, the last step of an average.  False: not supported for this type. */
bool nccl_divide(ncclDataType_t type, void *to, size_t size, int by);

#endif
