/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of the end times of queued work.  A full ring makes the host wait for the oldest end, like a driver's
 * pushbuffer.
 */
#include "sim/gpu/execution/queue.h"

#include <stdlib.h>

#include "sim/gpu/execution/stream.h"

void gpc_sim_queue_init(struct gpc_sim_stream *stream)
{
	uint64_t room = stream->context->sim->config.queue;

	stream->queue.room = room;
	stream->queue.ends = room ? calloc(room, sizeof *stream->queue.ends) : NULL;
}

void gpc_sim_queue_fini(struct gpc_sim_stream *stream)
{
	free(stream->queue.ends);
	stream->queue.ends = NULL;
}

/* The time from which the ring has room; 0: it has room now. */
static uint64_t opens_ns(const struct gpc_sim_queue *queue)
{
	return queue->ends ? queue->ends[queue->n % queue->room] : 0;
}

static void await(struct gpc_sim *sim, uint64_t until_ns)
{
	if (until_ns && !gpc_sim_is_over(sim, until_ns))
		gpc_sim_await(sim, until_ns);
}

void gpc_sim_queue_await(struct gpc_sim_stream *stream)
{
	struct gpc_sim_context *context = stream->context;
	uint64_t until_ns;

	if (!stream->queue.ends)
		return;
	pthread_mutex_lock(&context->lock);
	until_ns = opens_ns(&stream->queue);
	pthread_mutex_unlock(&context->lock);
	await(context->sim, until_ns);
}

void gpc_sim_queue_await_all(struct gpc_sim_context *context)
{
	uint64_t until_ns;

	if (!context->sim->config.is_event_queued || !context->sim->config.queue)
		return;
	pthread_mutex_lock(&context->lock);
	until_ns = opens_ns(&context->legacy.queue);
	gpc_list_each (link, &context->streams)
		until_ns = gpc_sim_later(until_ns,
			opens_ns(&gpc_list_entry(link, struct gpc_sim_stream, link)->queue));
	pthread_mutex_unlock(&context->lock);
	await(context->sim, until_ns);
}

void gpc_sim_queue_add_locked(struct gpc_sim_stream *stream, uint64_t end_ns)
{
	struct gpc_sim_queue *queue = &stream->queue;

	if (queue->ends)
		queue->ends[queue->n++ % queue->room] = end_ns;
}

/* Adds an entry for a context's event; the entry ends no earlier than the work before it in the stream. */
static void add_marker_locked(struct gpc_sim_stream *stream, uint64_t end_ns)
{
	gpc_sim_queue_add_locked(stream, gpc_sim_later(end_ns, atomic_load(&stream->tail_ns)));
}

void gpc_sim_queue_add_to_all(struct gpc_sim_context *context, uint64_t end_ns)
{
	if (!context->sim->config.is_event_queued || !context->sim->config.queue)
		return;
	pthread_mutex_lock(&context->lock);
	add_marker_locked(&context->legacy, end_ns);
	gpc_list_each (link, &context->streams)
		add_marker_locked(gpc_list_entry(link, struct gpc_sim_stream, link), end_ns);
	pthread_mutex_unlock(&context->lock);
}
