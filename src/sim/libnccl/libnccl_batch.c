/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is a list of tasks, which belongs to its host function, or, if that was captured, to a communicator. */
#include "sim/libnccl/libnccl_batch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Two channels of NCCL_BUFFSIZE bytes each; the default of NCCL_BUFFSIZE is 4 MiB. */
#define BUFFERS ((size_t)2 * (4 << 20))

/* Streams, and ranks of this process, in one batch. */
#define MAX_PLACES 64

struct nccl_batch {
	struct nccl_task *first;
	bool is_captured; /* runs again at each launch of its graph; freed with the communicator of `first` */
	struct nccl_batch *next;
};

static _Thread_local struct nccl_batch *group; /* between ncclGroupStart and ncclGroupEnd */
static _Thread_local unsigned group_depth;

static struct nccl_task **end_of(struct nccl_batch *batch)
{
	struct nccl_task **at = &batch->first;

	while (*at)
		at = &(*at)->next;
	return at;
}

void nccl_batch_free(struct nccl_batch *batch)
{
	while (batch) {
		struct nccl_batch *next = batch->next;

		for (struct nccl_task *task = batch->first, *later; task; task = later) {
			later = task->next;
			free(task);
		}
		free(batch);
		batch = next;
	}
}

/* Marks as done, and returns in parts[], a task of this kind and communicator for each rank that has one left. */
static size_t take_parts(
	const struct nccl_batch *batch, const struct nccl_task *like, struct nccl_task **parts)
{
	size_t n = 0;

	for (struct nccl_task *task = batch->first; task; task = task->next) {
		bool is_like = task->kind == like->kind && task->comm->ranks == like->comm->ranks;
		size_t i = 0;

		while (i < n && parts[i]->comm != task->comm)
			i++;
		if (!is_like || task->is_done || i < n || n == MAX_PLACES)
			continue;
		task->is_done = true;
		parts[n++] = task;
	}
	return n;
}

/* ---- what happens in streams ---- */

static ncclResult_t run_collective(const struct nccl_batch *batch, const struct nccl_task *first)
{
	const struct nccl_collective *data[MAX_PLACES];
	struct nccl_task *parts[MAX_PLACES];
	size_t n = take_parts(batch, first, parts);

	for (size_t i = 0; i < n; i++)
		data[i] = &parts[i]->data;
	return nccl_exchange(first->comm->ranks, data, (int)n);
}

static ncclResult_t run_task(const struct nccl_batch *batch, const struct nccl_task *task)
{
	struct nccl_ranks *ranks = task->comm->ranks;
	const struct nccl_collective *data = &task->data;

	switch (task->kind) {
	case NCCL_SEND:
		return nccl_send(ranks, data->rank, data->root, data->send, data->size);
	case NCCL_RECEIPT:
		return nccl_receive(ranks, data->rank, data->root, data->receive, data->size);
	case NCCL_COLLECTIVE:
		return task->is_done ? ncclSuccess : run_collective(batch, task);
	case NCCL_JOIN:
	case NCCL_SPLIT:
		break;
	}
	return ncclSuccess;
}

static void run(void *arg)
{
	struct nccl_batch *batch = arg;
	int error = ncclSuccess;

	/* After an error the ranks may be at different collectives, so no further one runs. */
	for (struct nccl_task *task = batch->first; task; task = task->next) {
		task->is_done = false;
		if (error == ncclSuccess)
			error = atomic_load(&task->comm->error);
	}
	for (enum nccl_task_kind kind = NCCL_SEND; kind <= NCCL_RECEIPT; kind++)
		for (struct nccl_task *task = batch->first; task; task = task->next)
			if (task->kind == kind && error == ncclSuccess)
				error = (int)run_task(batch, task);
	for (struct nccl_task *task = batch->first; task; task = task->next) {
		int none = ncclSuccess;

		atomic_compare_exchange_strong(&task->comm->error, &none, error);
		if (!batch->is_captured)
			atomic_fetch_sub(&task->comm->pending, 1);
	}
	if (!batch->is_captured)
		nccl_batch_free(batch);
}

/* The places at which the batch's tasks are. */
static size_t places_of(const struct nccl_batch *batch, struct standin_place *places)
{
	size_t n = 0;

	for (const struct nccl_task *task = batch->first; task; task = task->next) {
		size_t i = 0;

		while (i < n && (places[i].context != task->comm->context ||
					places[i].stream != task->stream))
			i++;
		if (i == n && n < MAX_PLACES)
			places[n++] = (struct standin_place){ task->comm->context, task->stream };
	}
	return n;
}

static bool take_buffers(struct nccl_comm *comm)
{
	bool has_them = comm->own.taken;

	if (!has_them && standin_enter(comm->context)) {
		has_them = standin_take(&comm->own, BUFFERS);
		standin_exit();
	}
	return has_them;
}

/* Takes ownership of the batch, which has work for streams only. */
static ncclResult_t submit_work(struct nccl_batch *batch)
{
	struct nccl_comm *comm = batch->first->comm;
	struct standin_place places[MAX_PLACES];
	size_t n = places_of(batch, places);
	ncclResult_t result = ncclSuccess;

	for (const struct nccl_task *task = batch->first; task; task = task->next)
		if (!take_buffers(task->comm))
			result = ncclUnhandledCudaError;
	if (result != ncclSuccess)
		goto undo_batch;
	bool is_captured = standin_is_captured(&places[0]);
	batch->is_captured = is_captured;
	for (const struct nccl_task *task = batch->first; task; task = task->next) {
		task->comm->own.stream = task->stream;
		atomic_fetch_add(&task->comm->pending, !is_captured);
	}
	result = (ncclResult_t)standin_call_together(places, n, run, batch);
	if (result != ncclSuccess)
		goto undo_pending;
	/* Unless it was captured, it may have run, and be freed. */
	if (is_captured) {
		batch->next = comm->captured;
		comm->captured = batch;
	}
	return ncclSuccess;

undo_pending:
	for (const struct nccl_task *task = batch->first; task; task = task->next)
		atomic_fetch_sub(&task->comm->pending, !is_captured);
undo_batch:
	nccl_batch_free(batch);
	return result;
}

/* ---- what happens at once ---- */

struct nccl_comm *nccl_comm_create(const char *name, int n, int rank, ncclResult_t *ret_result)
{
	struct nccl_comm *made = standin_create(sizeof *made);

	*ret_result = made ? ncclSuccess : ncclSystemError;
	if (!made)
		return NULL;
	made->context = standin_context();
	made->n = n;
	made->rank = rank;
	snprintf(made->name, sizeof made->name, "%s", name);
	if (n > 1)
		made->ranks = nccl_join(name, n, rank, ret_result);
	if (*ret_result == ncclSuccess)
		return made;
	standin_destroy(made);
	return NULL;
}

/* Makes the communicators of a split of those with one rank each: they are alone in the new one, too. */
static ncclResult_t split(const struct nccl_batch *batch, const struct nccl_task *first)
{
	static atomic_uint n_alone;
	struct nccl_ranks *ranks = first->comm->ranks;
	struct nccl_split *choices[MAX_PLACES];
	struct nccl_task *parts[MAX_PLACES];
	size_t n = take_parts(batch, first, parts);
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; i < n; i++)
		choices[i] = &parts[i]->split;
	if (first->comm->n > 1)
		result = nccl_split(ranks, choices, (int)n);
	else
		snprintf(choices[0]->new_name, NCCL_NAME, "gpusim-nccl-%d-%u", getpid(),
			atomic_fetch_add(&n_alone, 1));
	for (size_t i = 0; i < n && result == ncclSuccess; i++) {
		struct nccl_comm *made = NULL;

		if (choices[i]->new_n && standin_enter(parts[i]->comm->context)) {
			made = nccl_comm_create(choices[i]->new_name, choices[i]->new_n,
				choices[i]->new_rank, &result);
			standin_exit();
		}
		*parts[i]->ret_comm = (ncclComm_t)(void *)made;
	}
	return result;
}

/* Does what happens at once, and frees those tasks. */
static ncclResult_t do_at_once(struct nccl_batch *batch)
{
	ncclResult_t result = ncclSuccess;

	for (struct nccl_task *task = batch->first; task && result == ncclSuccess;
		task = task->next) {
		if (task->kind == NCCL_JOIN && task->comm->ranks)
			result = nccl_await(task->comm->ranks);
		if (task->kind == NCCL_SPLIT && !task->is_done)
			result = split(batch, task);
	}
	for (struct nccl_task **at = &batch->first; *at;) {
		struct nccl_task *task = *at;

		if (task->kind != NCCL_JOIN && task->kind != NCCL_SPLIT) {
			at = &task->next;
			continue;
		}
		*at = task->next;
		free(task);
	}
	return result;
}

/* Takes ownership of the batch, which has the tasks of all ranks of this process that it needs. */
static ncclResult_t carry_out(struct nccl_batch *batch)
{
	ncclResult_t result = do_at_once(batch);

	if (result == ncclSuccess && batch->first)
		return submit_work(batch);
	nccl_batch_free(batch);
	return result;
}

/* ---- threads ---- */

/* A batch that waits for the ranks of other threads. */
struct waiting {
	struct nccl_ranks *ranks;
	struct nccl_batch *batch;
	bool is_over;
	ncclResult_t result;
	struct waiting *next;
};

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_changed = PTHREAD_COND_INITIALIZER;
static struct waiting *waiting;

/* How many ranks of the communicator take part in the batch with a task that needs all of them. */
static int n_ranks_in(const struct nccl_batch *batch, const struct nccl_ranks *ranks)
{
	int n = 0;

	for (const struct nccl_task *task = batch->first; task; task = task->next) {
		const struct nccl_task *before = batch->first;
		bool is_one = task->comm->ranks == ranks &&
			      (task->kind == NCCL_COLLECTIVE || task->kind == NCCL_SPLIT);

		while (before != task && before->comm != task->comm)
			before = before->next;
		n += is_one && before == task;
	}
	return n;
}

/* The communicator of a task that needs ranks of this process which are not in the batch; NULL: there is none. */
static struct nccl_ranks *find_incomplete(const struct nccl_batch *batch)
{
	for (const struct nccl_task *task = batch->first; task; task = task->next) {
		struct nccl_ranks *ranks = task->comm->ranks;
		int n = ranks ? n_ranks_in(batch, ranks) : 0;

		if (n && n < nccl_n_local(ranks))
			return ranks;
	}
	return NULL;
}

/* Takes the batches that wait for the same communicator out of the list; those of *ret_others belong to their threads. */
static void merge_locked(
	struct nccl_batch *batch, const struct nccl_ranks *ranks, struct waiting **ret_others)
{
	for (struct waiting **at = &waiting; *at;) {
		struct waiting *other = *at;

		if (other->ranks != ranks) {
			at = &other->next;
			continue;
		}
		*at = other->next;
		*end_of(batch) = other->batch->first;
		other->batch->first = NULL;
		other->next = *ret_others;
		*ret_others = other;
	}
}

static ncclResult_t submit_with_threads(struct nccl_batch *batch, struct nccl_ranks *ranks)
{
	struct waiting own = { .ranks = ranks, .batch = batch };
	struct waiting *others = NULL;
	int n = n_ranks_in(batch, ranks);

	pthread_mutex_lock(&threads_lock);
	for (const struct waiting *other = waiting; other; other = other->next)
		n += other->ranks == ranks ? n_ranks_in(other->batch, ranks) : 0;
	if (n < nccl_n_local(ranks)) {
		own.next = waiting;
		waiting = &own;
		while (!own.is_over)
			pthread_cond_wait(&threads_changed, &threads_lock);
		pthread_mutex_unlock(&threads_lock);
		nccl_batch_free(batch);
		return own.result;
	}
	merge_locked(batch, ranks, &others);
	pthread_mutex_unlock(&threads_lock);
	ncclResult_t result = carry_out(batch);
	pthread_mutex_lock(&threads_lock);
	for (; others; others = others->next) {
		others->result = result;
		others->is_over = true;
	}
	pthread_cond_broadcast(&threads_changed);
	pthread_mutex_unlock(&threads_lock);
	return result;
}

/* True if the batch would receive from a rank of this process that sends in another batch: see the limits. */
static bool is_between_threads(const struct nccl_batch *batch)
{
	for (const struct nccl_task *task = batch->first; task; task = task->next) {
		const struct nccl_task *send = batch->first;

		if (task->kind != NCCL_RECEIPT ||
			!nccl_is_local(task->comm->ranks, task->data.root))
			continue;
		while (send && (send->kind != NCCL_SEND || send->comm->ranks != task->comm->ranks ||
				       send->data.rank != task->data.root ||
				       send->data.root != task->data.rank))
			send = send->next;
		if (!send)
			return true;
	}
	return false;
}

static ncclResult_t submit(struct nccl_batch *batch)
{
	struct nccl_ranks *ranks = find_incomplete(batch);

	if (is_between_threads(batch)) {
		nccl_batch_free(batch);
		return (ncclResult_t)standin_not_supported(
			"a message from a rank of this process, sent in another group");
	}
	return ranks ? submit_with_threads(batch, ranks) : carry_out(batch);
}

ncclResult_t nccl_add(const struct nccl_task *task)
{
	struct nccl_batch *batch = group_depth ? group : calloc(1, sizeof *batch);
	struct nccl_task *own = malloc(sizeof *own);

	if (!batch || !own) {
		free(own);
		if (!group_depth)
			free(batch);
		return ncclSystemError;
	}
	*own = *task;
	*end_of(batch) = own;
	return group_depth ? ncclSuccess : submit(batch);
}

ncclResult_t nccl_group_start(void)
{
	if (!group_depth)
		group = calloc(1, sizeof *group);
	if (!group)
		return ncclSystemError;
	group_depth++;
	return ncclSuccess;
}

ncclResult_t nccl_group_end(void)
{
	struct nccl_batch *batch = group;

	if (!group_depth)
		return ncclInvalidUsage;
	if (--group_depth)
		return ncclSuccess;
	group = NULL;
	return submit(batch);
}
