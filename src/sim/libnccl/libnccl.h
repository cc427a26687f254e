/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a communicator exchange bytes, over a shared-memory file named after the communicator's unique id:
 *
 *      header | chunk of rank 0 | chunk of rank 1 | ... | messages of rank 0 to 0 | of 0 to 1 | ...
 *
 * A collective proceeds in chunks: each rank copies its chunk into the file, all ranks meet, each rank takes its part
 * of every chunk, and all meet again.  A message is written behind the earlier ones to the same rank, for which the file
 * has a terabyte of addresses, and its pages are freed when it is received.  So to send never waits, unlike in NCCL.
 *
 * A process has one struct nccl_ranks per communicator, also if several of its ranks belong to it.  Those take part
 * together, because a simulated GPU runs one host function at a time: one of them could not wait for another.
 *
 * Threads     nccl_exchange, nccl_send, nccl_receive: one at a time per communicator, in host functions.  The others: any.
 *             nccl_leave: only while none of the former runs.
 * Failure     If a rank leaves or dies, the exchanges of all others fail, and the receipt of what it did not send;
 *             nccl_abort makes those of its own process fail.
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
	int rank;         /* whose part it is */
	const char *send; /* this and `receive` are device addresses */
	char *receive;
	size_t size;
	ncclDataType_t type;
	ncclRedOp_t op;
	const void *
		scale; /* each of the rank's elements is multiplied by this one, of host or device; NULL: by none */
	int root;
};

struct nccl_ranks;

/* Joins without waiting for the other ranks.  `name` is a file name without '/'.  NULL: *ret_result is the error. */
struct nccl_ranks *nccl_join(const char *name, int n, int rank, ncclResult_t *ret_result);
void nccl_leave(struct nccl_ranks *ranks, int rank);

/* Waits until all have joined, after which nccl_n_local is the number of this process's ranks. */
ncclResult_t nccl_await(struct nccl_ranks *ranks);
int nccl_n_local(const struct nccl_ranks *ranks);
bool nccl_is_local(const struct nccl_ranks *ranks, int rank);

/* Performs the collective, of which parts[0 .. n) are those of all ranks of this process. */
ncclResult_t nccl_exchange(
	struct nccl_ranks *ranks, const struct nccl_collective *const *parts, int n);

/* Messages of `size` bytes between device addresses.  Between two ranks they keep their order. */
ncclResult_t nccl_send(struct nccl_ranks *ranks, int from, int to, const char *bytes, size_t size);
ncclResult_t nccl_receive(struct nccl_ranks *ranks, int to, int from, char *bytes, size_t size);

#define NCCL_NAME 200

/* A rank's part in a split: what it chooses, and the communicator that it then joins. */
struct nccl_split {
	int rank;
	int color, key;
	int new_n, new_rank; /* new_n 0: none, because the color is NCCL_SPLIT_NOCOLOR */
	char new_name[NCCL_NAME];
};

/* Splits the communicator; parts[0 .. n) are those of all ranks of this process.  Waits for the others. */
ncclResult_t nccl_split(struct nccl_ranks *ranks, struct nccl_split *const *parts, int n);

/* Makes what waits for other ranks fail, and everything later that would have to wait. */
void nccl_abort(struct nccl_ranks *ranks);

/* Bytes per element; 0: unknown type. */
size_t nccl_bytes_of(ncclDataType_t type);

/* Sets to[i] = to[i] op from[i] in `size` bytes.  False: not supported for this type. */
bool nccl_reduce(ncclDataType_t type, ncclRedOp_t op, void *to, const void *from, size_t size);

/* Divides the elements in `size` bytes by `by`, the last step of an average.  False: not supported for this type. */
bool nccl_divide(ncclDataType_t type, void *to, size_t size, int by);

/* Multiplies the elements in `size` bytes by *by.  False: not supported for this type. */
bool nccl_scale(ncclDataType_t type, void *to, size_t size, const void *by);

#endif
