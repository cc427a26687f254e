/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks meet at a counter in shared memory: the last to arrive begins a new round and wakes the others.  Each rank
 * locks its byte of the file.  However its process ends, the kernel releases the lock, for which waiting ranks poll.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "simcuda/lib_nccl.h"
#include "simcuda/standin.h"

#define CHUNK   ((size_t)256 << 10)
#define LOOK_NS 50000000

/* The head of the file.  All zeros is its valid initial state. */
struct shared {
	_Atomic uint32_t joined;
	_Atomic uint32_t arrived; /* ranks that have arrived in this round */
	_Atomic uint32_t round;
	_Atomic int32_t pids[]; /* 0: not joined yet */
};

struct nccl_ranks {
	int n, rank;
	int fd;
	struct shared *shared;
	char *chunks;
	size_t size;
	char *reduced; /* CHUNK bytes: the result of a reduction */
	atomic_bool is_aborted;
};

static char *chunk_of(const struct nccl_ranks *ranks, int rank)
{
	return ranks->chunks + (size_t)rank * CHUNK;
}

/* Locks or queries a rank's byte of the file. */
static bool lock(const struct nccl_ranks *ranks, int command, int rank, struct flock *ret_lock)
{
	*ret_lock = (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1
	};
	return fcntl(ranks->fd, command, ret_lock) == 0;
}

/* True if the rank had joined and its lock is gone. */
static bool is_gone(const struct nccl_ranks *ranks, int rank)
{
	struct flock found;

	return rank != ranks->rank && atomic_load(&ranks->shared->pids[rank]) &&
	       lock(ranks, F_GETLK, rank, &found) && found.l_type == F_UNLCK;
}

static ncclResult_t map(struct nccl_ranks *ranks, const char *name)
{
	char path[NAME_MAX];
	size_t header =
		(sizeof *ranks->shared + (size_t)ranks->n * sizeof(int32_t) + 4095) / 4096 * 4096;

	snprintf(path, sizeof path, "/%s", name);
	ranks->size = header + (size_t)ranks->n * CHUNK;
	ranks->fd = shm_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (ranks->fd < 0)
		return ncclSystemError;
	/* Allocates the pages now, because an access to a page that cannot be allocated raises SIGBUS. */
	if (posix_fallocate(ranks->fd, 0, (off_t)ranks->size) != 0) {
		(void)shm_unlink(path);
		return ncclSystemError;
	}
	void *mapped = mmap(NULL, ranks->size, PROT_READ | PROT_WRITE, MAP_SHARED, ranks->fd, 0);
	if (mapped == MAP_FAILED)
		return ncclSystemError;
	ranks->shared = mapped;
	ranks->chunks = (char *)mapped + header;
	struct flock taken;
	if (!lock(ranks, F_SETLK, ranks->rank, &taken))
		return ncclInvalidUsage;
	atomic_store(&ranks->shared->pids[ranks->rank], getpid());
	/* The last rank to join removes the name. */
	if (atomic_fetch_add(&ranks->shared->joined, 1) + 1 == (uint32_t)ranks->n)
		(void)shm_unlink(path);
	for (int i = 0; i < ranks->n; i++)
		if (i != ranks->rank && atomic_load(&ranks->shared->pids[i]) == getpid())
			return (ncclResult_t)standin_not_supported("several ranks in one process");
	return ncclSuccess;
}

struct nccl_ranks *nccl_join(const char *name, int n, int rank, ncclResult_t *ret_result)
{
	struct nccl_ranks *ranks = calloc(1, sizeof *ranks);

	*ret_result = ncclSystemError;
	if (!ranks)
		return NULL;
	ranks->n = n;
	ranks->rank = rank;
	ranks->fd = -1;
	ranks->reduced = malloc(CHUNK);
	if (ranks->reduced)
		*ret_result = map(ranks, name);
	if (*ret_result == ncclSuccess)
		return ranks;
	nccl_leave(ranks);
	return NULL;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void nccl_abort(struct nccl_ranks *ranks)
{
	atomic_store(&ranks->is_aborted, true);
	futex(&ranks->shared->round, FUTEX_WAKE, INT_MAX, NULL);
}

void nccl_leave(struct nccl_ranks *ranks)
{
	if (ranks->shared)
		munmap(ranks->shared, ranks->size);
	if (ranks->fd >= 0)
		close(ranks->fd);
	free(ranks->reduced);
	free(ranks);
}

/* Waits until all have arrived; fails if a rank is gone. */
static ncclResult_t meet(struct nccl_ranks *ranks)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct shared *shared = ranks->shared;
	uint32_t round = atomic_load(&shared->round);

	if (atomic_fetch_add(&shared->arrived, 1) + 1 == (uint32_t)ranks->n) {
		atomic_store(&shared->arrived, 0);
		atomic_fetch_add(&shared->round, 1);
		futex(&shared->round, FUTEX_WAKE, INT_MAX, NULL);
		return ncclSuccess;
	}
	while (atomic_load(&shared->round) == round) {
		bool is_time =
			futex(&shared->round, FUTEX_WAIT, round, &look) != 0 && errno == ETIMEDOUT;

		if (atomic_load(&ranks->is_aborted))
			return ncclRemoteError;
		for (int i = 0; is_time && i < ranks->n; i++)
			/* A rank may leave once all have arrived, which ends the round: no failure. */
			if (is_gone(ranks, i) && atomic_load(&shared->round) == round)
				return ncclRemoteError;
	}
	return ncclSuccess;
}

/* Reduces n bytes at `at` of all ranks' chunks into `reduced`.  False: not supported for this type. */
static bool reduce(struct nccl_ranks *ranks, const struct nccl_collective *c, size_t at, size_t n)
{
	bool is_known = true;

	memcpy(ranks->reduced, chunk_of(ranks, 0) + at, n);
	for (int i = 1; i < ranks->n && is_known; i++)
		is_known = nccl_reduce(c->type, c->op, ranks->reduced, chunk_of(ranks, i) + at, n);
	if (is_known && c->op == ncclAvg)
		is_known = nccl_divide(c->type, ranks->reduced, n, ranks->n);
	return is_known;
}

/* Takes this rank's part of the chunks, which hold n bytes from `begin` on of each rank's data. */
static bool take(struct nccl_ranks *ranks, const struct nccl_collective *c, size_t begin, size_t n)
{
	size_t first = c->shape.scatters ? (size_t)ranks->rank * c->size : 0;
	size_t from = begin > first ? begin : first;
	size_t to = begin + n < first + c->size ? begin + n : first + c->size;
	bool is_done = true;

	if (from >= to || (c->shape.to_root && ranks->rank != c->root))
		return true;
	if (c->shape.reduces)
		return reduce(ranks, c, from - begin, to - from) &&
		       standin_bytes(c->receive + (from - first), ranks->reduced, to - from);
	if (c->shape.from_root)
		return standin_bytes(c->receive + (from - first),
			chunk_of(ranks, c->root) + (from - begin), to - from);
	for (int i = 0; i < ranks->n && is_done; i++)
		is_done = standin_bytes(c->receive + (size_t)i * c->size + (from - first),
			chunk_of(ranks, i) + (from - begin), to - from);
	return is_done;
}

ncclResult_t nccl_exchange(struct nccl_ranks *ranks, const struct nccl_collective *c)
{
	size_t gives = c->size * (c->shape.scatters ? (size_t)ranks->n : 1);
	bool is_giver = !c->shape.from_root || ranks->rank == c->root;
	bool is_done = true;

	for (size_t at = 0; at < gives; at += CHUNK) {
		size_t n = gives - at < CHUNK ? gives - at : CHUNK;
		ncclResult_t result;

		if (is_giver)
			is_done &= standin_bytes(chunk_of(ranks, ranks->rank), c->send + at, n);
		result = meet(ranks);
		if (result != ncclSuccess)
			return result;
		is_done &= take(ranks, c, at, n);
		result = meet(ranks);
		if (result != ncclSuccess)
			return result;
	}
	return is_done ? ncclSuccess : ncclUnhandledCudaError;
}
