/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a communicator exchange bytes: processes of one machine, over a file of shared memory that is called
 * after the communicator's unique id.
 *
 *      header | chunk of rank 0 | chunk of rank 1 | ...
 *
 * A collective goes chunk by chunk: each rank copies its own in, all meet, each takes what it wants of all, all meet.
 *
 * Threads     nccl_exchange: one at a time for each communicator; nccl_leave when none runs.
 * Failure     A rank that left, or died, ends the exchange of all others; so does nccl_abort its own.
 * Limits      One rank a process: the simulated GPU calls one host function at a time, and ranks wait in theirs.
 */
#ifndef SIMCUDA_LIB_NCCL_H
#define SIMCUDA_LIB_NCCL_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

/* What a collective does with `size` bytes, the unit that its count means. */
struct nccl_shape {
	bool scatters; /* a rank gives a unit for each rank, and takes its own of others; else it gives one */
	bool reduces;   /* what is taken of all becomes one unit; else it is kept side by side */
	bool from_root; /* only the root gives */
	bool to_root;   /* only the root takes */
};

struct nccl_collective {
	struct nccl_shape shape;
	const char *send; /* on the device, as is what is received */
	char *receive;
	size_t size;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
};

struct nccl_ranks;

/* Without waiting for the others.  `name` is a file's, without '/'.  NULL with the reason in ret_result. */
struct nccl_ranks *nccl_join(const char *name, int n, int rank, ncclResult_t *ret_result);
void nccl_leave(struct nccl_ranks *ranks);

/* In a host function of the stream, in place of a kernel.  ncclRemoteError where another rank is gone. */
ncclResult_t nccl_exchange(struct nccl_ranks *ranks, const struct nccl_collective *collective);

/* Ends the exchange that waits, and all later ones. */
void nccl_abort(struct nccl_ranks *ranks);

/* Bytes of an element; 0: of no type that is known here. */
size_t nccl_bytes_of(ncclDataType_t type);

/* to[i] = to[i] op from[i], over `size` bytes; and what an average is divided by in the end.  False: not of this type. */
bool nccl_reduce(ncclDataType_t type, ncclRedOp_t op, void *to, const void *from, size_t size);
bool nccl_divide(ncclDataType_t type, void *to, size_t size, int by);

#endif
