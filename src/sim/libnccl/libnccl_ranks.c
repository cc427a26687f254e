/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks meet at a counter in shared memory: the last to arrive begins a new round and wakes the others.  Each rank's
 * byte of the file is locked by its process.  However that ends, the kernel releases the lock, for which waiting ranks
 * poll.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/libnccl/libnccl.h"
#include "sim/standin/standin.h"

#define CHUNK   ((size_t)256 << 10)
#define LOOK_NS 50000000
#define PAIR_SHIFT \
	40 /* the messages from one rank to another have so many bits of addresses in the file */

/* Where ranks meet: in streams for collectives, on the host for splits. */
struct point {
	_Atomic uint32_t arrived; /* ranks that have arrived in this round */
	_Atomic uint32_t round;
};

/* A rank's part of the file's head. */
struct member {
	_Atomic int32_t pid; /* 0: not joined yet */
	int32_t color, key;  /* written before, and read after, all meet */
};

/* The head of the file.  All zeros is its valid initial state.  Behind the members: bytes sent from a to b, [a * n + b]. */
struct shared {
	_Atomic uint32_t n_joined;
	_Atomic uint32_t n_messages; /* sent by any rank to any other; wraps around */
	struct point stream, host;
	struct member members[];
};

struct nccl_ranks {
	char name[NCCL_NAME];
	int n, n_local;
	int fd;
	struct shared *shared;
	_Atomic uint64_t *sent;
	uint64_t *
		received; /* bytes received by b from a, [a * n + b]; only for ranks b of this process */
	char *chunks;
	size_t size;  /* of head and chunks, which are mapped */
	char *buffer; /* CHUNK bytes */
	unsigned n_splits;
	atomic_bool is_aborted;
	struct nccl_ranks *next;
};

/* Those that this process has joined. */
static struct nccl_ranks *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static char *chunk_of(const struct nccl_ranks *ranks, int rank)
{
	return ranks->chunks + (size_t)rank * CHUNK;
}

/* Locks, unlocks or queries a rank's byte of the file. */
static bool lock(
	const struct nccl_ranks *ranks, int command, short type, int rank, struct flock *ret_lock)
{
	*ret_lock =
		(struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1 };
	return fcntl(ranks->fd, command, ret_lock) == 0;
}

/* True if the rank had joined and its lock is gone. */
static bool is_gone(const struct nccl_ranks *ranks, int rank)
{
	int32_t pid = atomic_load(&ranks->shared->members[rank].pid);
	struct flock found;

	return pid && pid != getpid() && lock(ranks, F_GETLK, F_WRLCK, rank, &found) &&
	       found.l_type == F_UNLCK;
}

static bool is_any_gone(const struct nccl_ranks *ranks)
{
	bool is_one = false;

	for (int i = 0; i < ranks->n; i++)
		is_one |= is_gone(ranks, i);
	return is_one;
}

static ncclResult_t map(struct nccl_ranks *ranks)
{
	size_t n = (size_t)ranks->n;
	size_t members = sizeof *ranks->shared + n * sizeof *ranks->shared->members;
	size_t head = (members + 7) / 8 * 8 + n * n * sizeof *ranks->sent;
	char path[NAME_MAX];

	head = (head + 4095) / 4096 * 4096;
	snprintf(path, sizeof path, "/%s", ranks->name);
	ranks->size = head + n * CHUNK;
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
	ranks->sent = (void *)((char *)mapped + (members + 7) / 8 * 8);
	ranks->chunks = (char *)mapped + head;
	return ncclSuccess;
}

static ncclResult_t join_as(struct nccl_ranks *ranks, int rank)
{
	struct flock taken;
	char path[NAME_MAX];

	if (atomic_load(&ranks->shared->members[rank].pid) == getpid() ||
		!lock(ranks, F_SETLK, F_WRLCK, rank, &taken))
		return ncclInvalidUsage;
	atomic_store(&ranks->shared->members[rank].pid, getpid());
	ranks->n_local++;
	/* The last rank to join removes the name. */
	if (atomic_fetch_add(&ranks->shared->n_joined, 1) + 1 == (uint32_t)ranks->n) {
		snprintf(path, sizeof path, "/%s", ranks->name);
		(void)shm_unlink(path);
	}
	return ncclSuccess;
}

static void drop(struct nccl_ranks *ranks)
{
	if (ranks->shared)
		munmap(ranks->shared, ranks->size);
	if (ranks->fd >= 0)
		close(ranks->fd);
	free(ranks->received);
	free(ranks->buffer);
	free(ranks);
}

static struct nccl_ranks *create(const char *name, int n, ncclResult_t *ret_result)
{
	struct nccl_ranks *ranks = calloc(1, sizeof *ranks);

	*ret_result = ncclSystemError;
	if (!ranks)
		return NULL;
	snprintf(ranks->name, sizeof ranks->name, "%s", name);
	ranks->n = n;
	ranks->fd = -1;
	ranks->buffer = malloc(CHUNK);
	ranks->received = calloc((size_t)n * (size_t)n, sizeof *ranks->received);
	if (ranks->buffer && ranks->received)
		*ret_result = map(ranks);
	if (*ret_result == ncclSuccess)
		return ranks;
	drop(ranks);
	return NULL;
}

struct nccl_ranks *nccl_join(const char *name, int n, int rank, ncclResult_t *ret_result)
{
	struct nccl_ranks *ranks;
	bool is_new;

	pthread_mutex_lock(&all_lock);
	for (ranks = all; ranks && strcmp(ranks->name, name) != 0; ranks = ranks->next)
		;
	is_new = !ranks;
	*ret_result = is_new || ranks->n == n ? ncclSuccess : ncclInvalidArgument;
	if (is_new)
		ranks = create(name, n, ret_result);
	if (*ret_result == ncclSuccess)
		*ret_result = join_as(ranks, rank);
	if (is_new && *ret_result == ncclSuccess) {
		ranks->next = all;
		all = ranks;
	} else if (is_new && ranks) {
		drop(ranks);
	}
	pthread_mutex_unlock(&all_lock);
	return *ret_result == ncclSuccess ? ranks : NULL;
}

void nccl_leave(struct nccl_ranks *ranks, int rank)
{
	struct nccl_ranks **at = &all;
	struct flock released;

	pthread_mutex_lock(&all_lock);
	(void)lock(ranks, F_SETLK, F_UNLCK, rank, &released);
	if (--ranks->n_local == 0) {
		while (*at != ranks)
			at = &(*at)->next;
		*at = ranks->next;
		drop(ranks);
	}
	pthread_mutex_unlock(&all_lock);
}

int nccl_n_local(const struct nccl_ranks *ranks)
{
	return ranks->n_local;
}

bool nccl_is_local(const struct nccl_ranks *ranks, int rank)
{
	return atomic_load(&ranks->shared->members[rank].pid) == getpid();
}

static void wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits until *word may no longer be `value`.  True: nothing happened for LOOK_NS, so it is time to look for the others. */
static bool wait_for_change(_Atomic uint32_t *word, uint32_t value)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	standin_settle();
	return syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0) != 0 &&
	       errno == ETIMEDOUT;
}

ncclResult_t nccl_await(struct nccl_ranks *ranks)
{
	uint32_t n;

	while ((n = atomic_load(&ranks->shared->n_joined)) < (uint32_t)ranks->n) {
		bool is_time = wait_for_change(&ranks->shared->n_joined, n);

		if (atomic_load(&ranks->is_aborted) || (is_time && is_any_gone(ranks)))
			return ncclRemoteError;
	}
	wake(&ranks->shared->n_joined);
	return ncclSuccess;
}

void nccl_abort(struct nccl_ranks *ranks)
{
	atomic_store(&ranks->is_aborted, true);
	wake(&ranks->shared->stream.round);
	wake(&ranks->shared->host.round);
	wake(&ranks->shared->n_messages);
}

/* Waits until all have arrived, n of them with this call; fails if a rank is gone. */
static ncclResult_t meet(struct nccl_ranks *ranks, struct point *point, int n)
{
	uint32_t round = atomic_load(&point->round);

	if (atomic_fetch_add(&point->arrived, (uint32_t)n) + (uint32_t)n == (uint32_t)ranks->n) {
		atomic_store(&point->arrived, 0);
		atomic_fetch_add(&point->round, 1);
		wake(&point->round);
		return ncclSuccess;
	}
	while (atomic_load(&point->round) == round) {
		bool is_time = wait_for_change(&point->round, round);

		if (atomic_load(&ranks->is_aborted))
			return ncclRemoteError;
		/* A rank may leave once all have arrived, which ends the round: no failure. */
		if (is_time && is_any_gone(ranks) && atomic_load(&point->round) == round)
			return ncclRemoteError;
	}
	return ncclSuccess;
}

/* ---- collectives ---- */

/* Reduces n bytes at `at` of all ranks' chunks into `buffer`.  False: not supported for this type. */
static bool reduce(struct nccl_ranks *ranks, const struct nccl_collective *c, size_t at, size_t n)
{
	bool is_known = true;

	memcpy(ranks->buffer, chunk_of(ranks, 0) + at, n);
	for (int i = 1; i < ranks->n && is_known; i++)
		is_known = nccl_reduce(c->type, c->op, ranks->buffer, chunk_of(ranks, i) + at, n);
	if (is_known && c->op == ncclAvg)
		is_known = nccl_divide(c->type, ranks->buffer, n, ranks->n);
	return is_known;
}

/* Copies n bytes from `begin` on of a rank's data to its chunk. */
static bool give(struct nccl_ranks *ranks, const struct nccl_collective *c, size_t begin, size_t n)
{
	char *chunk = chunk_of(ranks, c->rank);
	uint64_t by = 0;

	if (c->shape.from_root && c->rank != c->root)
		return true;
	if (!standin_bytes(chunk, c->send + begin, n))
		return false;
	return !c->scale || (standin_bytes(&by, c->scale, nccl_bytes_of(c->type)) &&
				    nccl_scale(c->type, chunk, n, &by));
}

/* Takes a rank's part of the chunks, which hold n bytes from `begin` on of each rank's data. */
static bool take(struct nccl_ranks *ranks, const struct nccl_collective *c, size_t begin, size_t n)
{
	size_t first = c->shape.scatters ? (size_t)c->rank * c->size : 0;
	size_t from = begin > first ? begin : first;
	size_t to = begin + n < first + c->size ? begin + n : first + c->size;
	bool is_done = true;

	if (from >= to || (c->shape.to_root && c->rank != c->root))
		return true;
	if (c->shape.reduces)
		return reduce(ranks, c, from - begin, to - from) &&
		       standin_bytes(c->receive + (from - first), ranks->buffer, to - from);
	if (c->shape.from_root)
		return standin_bytes(c->receive + (from - first),
			chunk_of(ranks, c->root) + (from - begin), to - from);
	for (int i = 0; i < ranks->n && is_done; i++)
		is_done = standin_bytes(c->receive + (size_t)i * c->size + (from - first),
			chunk_of(ranks, i) + (from - begin), to - from);
	return is_done;
}

ncclResult_t nccl_exchange(
	struct nccl_ranks *ranks, const struct nccl_collective *const *parts, int n_parts)
{
	const struct nccl_collective *any = parts[0];
	size_t gives = any->size * (any->shape.scatters ? (size_t)ranks->n : 1);
	bool is_done = true;

	for (size_t at = 0; at < gives; at += CHUNK) {
		size_t n = gives - at < CHUNK ? gives - at : CHUNK;
		ncclResult_t result;

		for (int i = 0; i < n_parts; i++)
			is_done &= give(ranks, parts[i], at, n);
		result = meet(ranks, &ranks->shared->stream, n_parts);
		if (result != ncclSuccess)
			return result;
		for (int i = 0; i < n_parts; i++)
			is_done &= take(ranks, parts[i], at, n);
		result = meet(ranks, &ranks->shared->stream, n_parts);
		if (result != ncclSuccess)
			return result;
	}
	return is_done ? ncclSuccess : ncclUnhandledCudaError;
}

/* ---- messages ---- */

/* The place in the file of the byte number `at` that one rank sends to another; *n is cut where the addresses wrap. */
static off_t place_of(const struct nccl_ranks *ranks, size_t pair, uint64_t at, size_t *n)
{
	uint64_t span = UINT64_C(1) << PAIR_SHIFT;

	if (*n > span - at % span)
		*n = span - at % span;
	return (off_t)(ranks->size + pair * span + at % span);
}

ncclResult_t nccl_send(struct nccl_ranks *ranks, int from, int to, const char *bytes, size_t size)
{
	size_t pair = (size_t)from * (size_t)ranks->n + (size_t)to;

	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < CHUNK ? size - at : CHUNK;
		off_t place = place_of(ranks, pair, atomic_load(&ranks->sent[pair]), &n);
		if (!standin_bytes(ranks->buffer, bytes + at, n))
			return ncclUnhandledCudaError;
		if (pwrite(ranks->fd, ranks->buffer, n, place) != (ssize_t)n)
			return ncclSystemError;
		atomic_fetch_add(&ranks->sent[pair], n);
		atomic_fetch_add(&ranks->shared->n_messages, 1);
		wake(&ranks->shared->n_messages);
	}
	return ncclSuccess;
}

/* Waits until more was sent than received, and returns how much. */
static uint64_t await_bytes(struct nccl_ranks *ranks, int from, size_t pair)
{
	uint64_t received = ranks->received[pair];
	bool is_time = false;

	for (;;) {
		uint32_t n_messages = atomic_load(&ranks->shared->n_messages);
		bool is_over = atomic_load(&ranks->is_aborted) || (is_time && is_gone(ranks, from));
		/* Looked at after the sender, who may have sent before it left. */
		uint64_t n = atomic_load(&ranks->sent[pair]) - received;

		if (n || is_over)
			return n;
		is_time = wait_for_change(&ranks->shared->n_messages, n_messages);
	}
}

ncclResult_t nccl_receive(struct nccl_ranks *ranks, int to, int from, char *bytes, size_t size)
{
	size_t pair = (size_t)from * (size_t)ranks->n + (size_t)to;

	for (size_t at = 0, n; at < size; at += n) {
		uint64_t there = await_bytes(ranks, from, pair);

		n = size - at < CHUNK ? size - at : CHUNK;
		n = there < n ? (size_t)there : n;
		if (!n)
			return ncclRemoteError;
		off_t place = place_of(ranks, pair, ranks->received[pair], &n);
		if (pread(ranks->fd, ranks->buffer, n, place) != (ssize_t)n)
			return ncclSystemError;
		(void)fallocate(
			ranks->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place, (off_t)n);
		ranks->received[pair] += n;
		if (!standin_bytes(bytes + at, ranks->buffer, n))
			return ncclUnhandledCudaError;
	}
	return ncclSuccess;
}

/* ---- splits ---- */

/* A rank goes before another by its key, or its number. */
static void place_in_group(const struct nccl_ranks *ranks, struct nccl_split *part)
{
	part->new_n = 0;
	part->new_rank = 0;
	for (int i = 0; i < ranks->n && part->color >= 0; i++) {
		const struct member *member = &ranks->shared->members[i];
		bool is_before =
			member->key < part->key || (member->key == part->key && i < part->rank);

		if (member->color != part->color)
			continue;
		part->new_n++;
		part->new_rank += is_before;
	}
}

ncclResult_t nccl_split(struct nccl_ranks *ranks, struct nccl_split *const *parts, int n)
{
	ncclResult_t result;

	for (int i = 0; i < n; i++) {
		ranks->shared->members[parts[i]->rank].color = parts[i]->color;
		ranks->shared->members[parts[i]->rank].key = parts[i]->key;
	}
	result = meet(ranks, &ranks->shared->host, n);
	for (int i = 0; i < n && result == ncclSuccess; i++) {
		place_in_group(ranks, parts[i]);
		if (snprintf(parts[i]->new_name, NCCL_NAME, "%s.%u.%d", ranks->name,
			    ranks->n_splits, parts[i]->color) >= NCCL_NAME)
			result = ncclSystemError;
	}
	ranks->n_splits++;
	/* The next split may change what the members chose. */
	return result == ncclSuccess ? meet(ranks, &ranks->shared->host, n) : result;
}
