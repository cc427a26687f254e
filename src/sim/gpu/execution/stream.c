/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream is one number, the end of its last work.  A submission computes the start and end of its work at once, from
 * the ends of the work that must come first.  So the timeline needs no threads, and to compute an end takes O(1).
 */
#include "sim/gpu/execution/stream.h"

#include <stdlib.h>

#include "base/thread.h"
#include "sim/gpu/execution/capture.h"
#include "sim/gpu/memory/ipc.h"

/* ---- contexts ---- */

/* The context whose memory `context` uses: itself or its primary.  Contexts with the same home share events. */
static const struct gpc_sim_context *home_of(const struct gpc_sim_context *context)
{
	return context->primary ? context->primary : context;
}

void gpc_sim_context_init(
	struct gpc_sim_context *context, struct gpc_sim *sim, struct gpc_sim_device *device)
{
	context->sim = sim;
	context->device = device;
	context->legacy.magic = GPC_SIM_STREAM_MAGIC;
	context->legacy.context = context;
	gpc_list_init(&context->streams);
	pthread_mutex_init(&context->lock, NULL);
	gpc_sim_queue_init(&context->legacy);
}

CUresult gpc_sim_context_create(
	struct gpc_sim *sim, unsigned device, unsigned flags, struct gpc_sim_context **ret_context)
{
	struct gpc_sim_context *context;
	CUresult res;

	if (device >= sim->config.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	context = calloc(1, sizeof *context);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	res = gpc_sim_device_charge(&sim->devices[device], sim->config.context_cost);
	if (res != CUDA_SUCCESS) {
		free(context);
		return res;
	}
	context->flags = flags;
	gpc_sim_context_init(context, sim, &sim->devices[device]);
	context->number = atomic_fetch_add(&sim->n_contexts, 1) + 1;
	if (!gpc_sim_race_open_context(context)) {
		res = CUDA_ERROR_OUT_OF_MEMORY;
		goto undo_charge;
	}
	pthread_mutex_lock(&sim->contexts_lock);
	gpc_list_append(&sim->contexts, &context->link);
	pthread_mutex_unlock(&sim->contexts_lock);
	*ret_context = context;
	return CUDA_SUCCESS;

undo_charge:
	gpc_sim_device_uncharge(context->device, sim->config.context_cost);
	gpc_sim_queue_fini(&context->legacy);
	pthread_mutex_destroy(&context->lock);
	free(context);
	return res;
}

/* Takes a stream out of its context, where others may be made meanwhile; the list itself if there is none. */
static struct gpc_list *take_stream(struct gpc_sim_context *context)
{
	pthread_mutex_lock(&context->lock);
	struct gpc_list *link = context->streams.next;
	gpc_list_remove(link);
	pthread_mutex_unlock(&context->lock);
	return link;
}

static void drop_streams_and_memory(struct gpc_sim_context *context)
{
	struct gpc_sim_race_clock *known = gpc_sim_race_of_context(context);

	gpc_sim_await(context->sim, atomic_load(&context->tail_ns));
	gpc_sim_race_learn(context->sim, known, true);
	gpc_sim_race_disown_all(context);
	if (!context->primary) {
		gpc_sim_device_free_owner(context->device, context->number);
		gpc_sim_ipc_close_all(context);
	}
	for (struct gpc_list *link; (link = take_stream(context)) != &context->streams;)
		gpc_sim_stream_destroy(gpc_list_entry(link, struct gpc_sim_stream, link));
}

void gpc_sim_context_destroy(struct gpc_sim_context *context)
{
	struct gpc_sim *sim = context->sim;

	drop_streams_and_memory(context);
	if (!context->primary) {
		pthread_mutex_lock(&sim->contexts_lock);
		gpc_list_remove(&context->link);
		pthread_mutex_unlock(&sim->contexts_lock);
	}
	gpc_sim_race_close_context(context);
	if (!context->primary)
		gpc_sim_device_uncharge(context->device, sim->config.context_cost);
	gpc_sim_queue_fini(&context->legacy);
	pthread_mutex_destroy(&context->lock);
	free(context);
}

void gpc_sim_context_reset(struct gpc_sim_context *context)
{
	drop_streams_and_memory(context);
	atomic_store(&context->broken, 0);
	atomic_store(&context->device->fault, 0);
}

void gpc_sim_context_break(struct gpc_sim_context *context, CUresult code)
{
	int none = 0;

	atomic_compare_exchange_strong(&context->broken, &none, (int)code);
}

void gpc_sim_context_fault(struct gpc_sim_context *context, CUresult code)
{
	int none = 0;

	gpc_sim_context_break(context, code);
	atomic_compare_exchange_strong(&context->device->fault, &none, (int)code);
}

CUresult gpc_sim_context_sync(struct gpc_sim_context *context)
{
	CUresult res = gpc_sim_capture_check_context(context);

	if (res != CUDA_SUCCESS)
		return res;
	struct gpc_sim_race_clock *known = gpc_sim_race_of_context(context);
	gpc_sim_await(context->sim, atomic_load(&context->tail_ns));
	gpc_sim_race_learn(context->sim, known, true);
	gpc_sim_mempools_synchronized(context->sim, context->device);
	return gpc_sim_context_state(context);
}

CUresult gpc_sim_context_record(struct gpc_sim_context *context, struct gpc_sim_event *event)
{
	CUresult res = gpc_sim_context_state(context);

	if (home_of(event->context) != home_of(context))
		return CUDA_ERROR_INVALID_HANDLE;
	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_context(context);
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_queue_await_all(context);
	atomic_store_explicit(&event->capture_number, 0, memory_order_relaxed);
	gpc_sim_race_record_context(context, event);
	atomic_store(&event->done_ns, gpc_sim_later(atomic_load(&context->tail_ns), 1));
	gpc_sim_queue_add_to_all(context, 0);
	return CUDA_SUCCESS;
}

CUresult gpc_sim_context_wait(struct gpc_sim_context *context, struct gpc_sim_event *event)
{
	CUresult res = gpc_sim_context_state(context);

	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_context(context);
	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_refuse_event(context->sim, event);
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_queue_await_all(context);
	gpc_sim_race_wait_context(context, event);
	gpc_sim_max(&context->barrier_ns, atomic_load(&event->done_ns));
	gpc_sim_queue_add_to_all(context, atomic_load(&event->done_ns));
	return CUDA_SUCCESS;
}

/* ---- streams ---- */

static struct gpc_sim_stream *stream_create_locked(
	struct gpc_sim_context *context, unsigned flags, int priority)
{
	struct gpc_sim_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->magic = GPC_SIM_STREAM_MAGIC;
	stream->flags = flags;
	stream->priority = priority;
	stream->number = atomic_fetch_add(&context->sim->n_streams, 1) + 1;
	stream->context = context;
	if (!gpc_sim_race_open_stream(stream)) {
		free(stream);
		return NULL;
	}
	gpc_sim_queue_init(stream);
	gpc_list_append(&context->streams, &stream->link);
	return stream;
}

CUresult gpc_sim_stream_create(struct gpc_sim_context *context, unsigned flags, int priority,
	struct gpc_sim_stream **ret_stream)
{
	pthread_mutex_lock(&context->lock);
	struct gpc_sim_stream *stream = stream_create_locked(context, flags, priority);
	pthread_mutex_unlock(&context->lock);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

void gpc_sim_stream_destroy(struct gpc_sim_stream *stream)
{
	struct gpc_sim_context *context = stream->context;

	gpc_sim_capture_drop(stream);
	pthread_mutex_lock(&context->lock);
	gpc_list_remove(&stream->link);
	pthread_mutex_unlock(&context->lock);
	gpc_sim_race_close_stream(stream);
	stream->magic = 0;
	gpc_sim_queue_fini(stream);
	free(stream);
}

struct gpc_sim_stream *gpc_sim_stream_of_thread(struct gpc_sim_context *context)
{
	uint32_t thread = gpc_thread_id();
	struct gpc_sim_stream *found = NULL;

	pthread_mutex_lock(&context->lock);
	gpc_list_each (link, &context->streams) {
		struct gpc_sim_stream *stream = gpc_list_entry(link, struct gpc_sim_stream, link);
		if (stream->thread == thread) {
			found = stream;
			break;
		}
	}
	if (!found) {
		found = stream_create_locked(context, CU_STREAM_DEFAULT, 0);
		if (found)
			found->thread = thread;
	}
	pthread_mutex_unlock(&context->lock);
	return found;
}

/* The end of all that work on the stream waits for, if the stream itself is busy until `own_ns`. */
static uint64_t end_of_earlier(const struct gpc_sim_stream *stream, uint64_t own_ns)
{
	const struct gpc_sim_context *context = stream->context;
	uint64_t start = gpc_sim_later(own_ns, atomic_load(&context->barrier_ns));

	if (context->primary)
		start = gpc_sim_later(start, atomic_load(&context->primary->barrier_ns));
	if (gpc_sim_is_legacy(stream))
		return gpc_sim_later(start, atomic_load(&context->blocking_ns));
	if (gpc_sim_is_blocking(stream))
		return gpc_sim_later(start, atomic_load(&context->legacy.tail_ns));
	return start;
}

static uint64_t start_of(const struct gpc_sim_stream *stream, uint64_t own_ns)
{
	return gpc_sim_later(
		gpc_sim_clock_now(&stream->context->sim->clock), end_of_earlier(stream, own_ns));
}

bool gpc_sim_stream_is_idle(const struct gpc_sim_stream *stream)
{
	return gpc_sim_is_over(
		stream->context->sim, end_of_earlier(stream, atomic_load(&stream->tail_ns)));
}

/* `end` is the end of work of the context. */
static void note_end(struct gpc_sim_context *context, uint64_t end)
{
	gpc_sim_max(&context->tail_ns, end);
	if (context->primary)
		gpc_sim_max(&context->primary->tail_ns, end);
	gpc_sim_max(&context->device->tail_ns, end);
}

/* Appends work to the stream; NULL: the record of an event, or a wait, which have no duration.  Returns the end. */
static uint64_t advance_locked(struct gpc_sim_stream *stream, const struct gpc_sim_effect *work)
{
	struct gpc_sim_context *context = stream->context;
	bool is_early = work && work->is_early && stream->early_ns;
	uint64_t tail = atomic_load(&stream->tail_ns);
	uint64_t start = start_of(stream, is_early ? stream->early_ns : tail);
	uint64_t done = start + gpc_sim_managed_duration(context, work);
	uint64_t end = gpc_sim_later(done, tail);

	/* An early kernel does not change early_ns: all that follow one ordinary kernel may begin with that one. */
	if (!is_early)
		stream->early_ns = work && work->kind == GPC_SIM_EFFECT_KERNEL ? start : 0;
	atomic_store(&stream->tail_ns, end);
	gpc_sim_queue_add_locked(stream, end);
	if (gpc_sim_is_blocking(stream) && !gpc_sim_is_legacy(stream))
		gpc_sim_max(&context->blocking_ns, end);
	note_end(context, end);
	if (work && work->context != context)
		note_end(work->context, end);
	gpc_sim_race_advance(stream, work, is_early);
	return done;
}

static struct gpc_sim_context *find_locked(struct gpc_sim *sim, uint32_t number)
{
	gpc_list_each (link, &sim->contexts) {
		struct gpc_sim_context *context =
			gpc_list_entry(link, struct gpc_sim_context, link);
		if (context->number == number)
			return context;
	}
	return NULL;
}

static CUresult submit_for(
	struct gpc_sim_stream *stream, struct gpc_sim_context *home, struct gpc_sim_effect *effect)
{
	struct gpc_sim_context *context = stream->context;
	CUresult res = home ? gpc_sim_context_state(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;

	if (res == CUDA_SUCCESS && gpc_sim_is_legacy(stream))
		res = gpc_sim_capture_check_legacy(context);
	if (res != CUDA_SUCCESS)
		goto undo_effect;
	effect->context = home;
	effect->home = home->number;
	if (atomic_load(&stream->capture))
		return gpc_sim_capture_add(stream, effect);
	gpc_sim_queue_await(stream);
	/* One lock around both: two threads could otherwise queue effects of equal ends in the wrong order. */
	pthread_mutex_lock(&context->lock);
	effect->end_ns = advance_locked(stream, effect);
	gpc_sim_race_submit(stream, effect);
	bool is_queued = gpc_sim_effect_submit(context->sim, effect);
	pthread_mutex_unlock(&context->lock);
	if (!is_queued) {
		res = CUDA_ERROR_OUT_OF_MEMORY;
		goto undo_effect;
	}
	gpc_sim_settle(context->sim);
	return CUDA_SUCCESS;

undo_effect:
	gpc_sim_effect_destroy(effect);
	return res;
}

CUresult gpc_sim_stream_submit(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect)
{
	return submit_for(stream, stream->context, effect);
}

CUresult gpc_sim_stream_submit_node(struct gpc_sim_stream *stream, struct gpc_sim_effect *node)
{
	struct gpc_sim_context *context = stream->context;

	if (!node->home || node->home == context->number)
		return submit_for(stream, context, node);
	pthread_mutex_lock(&context->sim->contexts_lock);
	struct gpc_sim_context *home = find_locked(context->sim, node->home);
	pthread_mutex_unlock(&context->sim->contexts_lock);
	return submit_for(stream, home, node);
}

CUresult gpc_sim_stream_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event)
{
	struct gpc_sim_context *context = stream->context;
	CUresult res = gpc_sim_context_state(context);

	if (home_of(event->context) != home_of(context))
		return CUDA_ERROR_INVALID_HANDLE;
	if (res == CUDA_SUCCESS && gpc_sim_is_legacy(stream))
		res = gpc_sim_capture_check_legacy(context);
	if (res != CUDA_SUCCESS)
		return res;
	if (atomic_load(&stream->capture))
		return gpc_sim_capture_record(stream, event);
	gpc_sim_queue_await(stream);
	pthread_mutex_lock(&context->lock);
	uint64_t end = advance_locked(stream, NULL);
	gpc_sim_race_record(stream, event);
	pthread_mutex_unlock(&context->lock);
	atomic_store(&event->capture_number, 0);
	atomic_store(&event->done_ns, end);
	return CUDA_SUCCESS;
}

CUresult gpc_sim_stream_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event)
{
	struct gpc_sim_context *context = stream->context;
	CUresult res = gpc_sim_context_state(context);

	if (res == CUDA_SUCCESS && gpc_sim_is_legacy(stream))
		res = gpc_sim_capture_check_legacy(context);
	if (res != CUDA_SUCCESS)
		return res;
	if (atomic_load(&stream->capture) || atomic_load(&event->capture_number))
		return gpc_sim_capture_wait(stream, event);
	gpc_sim_queue_await(stream);
	pthread_mutex_lock(&context->lock);
	gpc_sim_max(&stream->tail_ns, atomic_load(&event->done_ns));
	gpc_sim_race_wait(stream, event);
	(void)advance_locked(stream, NULL);
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

static uint64_t end_of(struct gpc_sim_stream *stream)
{
	uint64_t end = atomic_load(&stream->tail_ns);

	return gpc_sim_is_legacy(stream)
		       ? gpc_sim_later(end, atomic_load(&stream->context->blocking_ns))
		       : end;
}

CUresult gpc_sim_stream_query(struct gpc_sim_stream *stream)
{
	struct gpc_sim *sim = stream->context->sim;
	CUresult res = gpc_sim_capture_refuse(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

	if (res == CUDA_SUCCESS && gpc_sim_is_legacy(stream))
		res = gpc_sim_capture_check_legacy(stream->context);
	if (res != CUDA_SUCCESS)
		return res;
	res = gpc_sim_capture_check_unsafe(sim);
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_settle(sim);
	res = gpc_sim_context_state(stream->context);
	if (res != CUDA_SUCCESS)
		return res;
	struct gpc_sim_race_clock *known = gpc_sim_race_of_stream(stream);
	bool has_ended = gpc_sim_is_over(sim, end_of(stream));
	gpc_sim_race_learn(sim, known, has_ended);
	return has_ended ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult gpc_sim_stream_sync(struct gpc_sim_stream *stream)
{
	CUresult res = gpc_sim_capture_refuse(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

	if (res == CUDA_SUCCESS && gpc_sim_is_legacy(stream))
		res = gpc_sim_capture_check_legacy(stream->context);
	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_unsafe(stream->context->sim);
	if (res != CUDA_SUCCESS)
		return res;
	struct gpc_sim_race_clock *known = gpc_sim_race_of_stream(stream);
	gpc_sim_await(stream->context->sim, end_of(stream));
	gpc_sim_race_learn(stream->context->sim, known, true);
	gpc_sim_mempools_synchronized(stream->context->sim, stream->context->device);
	return gpc_sim_context_state(stream->context);
}

/* ---- events ---- */

CUresult gpc_sim_event_create(
	struct gpc_sim_context *context, unsigned flags, struct gpc_sim_event **ret_event)
{
	struct gpc_sim_event *event = calloc(1, sizeof *event);

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->magic = GPC_SIM_EVENT_MAGIC;
	event->flags = flags;
	event->context = context;
	*ret_event = event;
	return CUDA_SUCCESS;
}

void gpc_sim_event_destroy(struct gpc_sim_event *event)
{
	gpc_sim_race_close_event(event);
	event->magic = 0;
	free(event);
}

CUresult gpc_sim_event_query(struct gpc_sim_event *event)
{
	struct gpc_sim *sim = event->context->sim;

	if (atomic_load(&event->capture_number))
		return CUDA_ERROR_CAPTURED_EVENT;
	CUresult res = gpc_sim_capture_check_unsafe(sim);
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_settle(sim);
	res = gpc_sim_context_state(event->context);
	if (res != CUDA_SUCCESS)
		return res;
	struct gpc_sim_race_clock *known = gpc_sim_race_of_event(event);
	bool has_passed = gpc_sim_is_over(sim, atomic_load(&event->done_ns));
	gpc_sim_race_learn(sim, known, has_passed);
	return has_passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult gpc_sim_event_sync(struct gpc_sim_event *event)
{
	if (atomic_load(&event->capture_number))
		return CUDA_ERROR_CAPTURED_EVENT;
	CUresult res = gpc_sim_capture_check_unsafe(event->context->sim);
	if (res != CUDA_SUCCESS)
		return res;
	struct gpc_sim_race_clock *known = gpc_sim_race_of_event(event);
	gpc_sim_await(event->context->sim, atomic_load(&event->done_ns));
	gpc_sim_race_learn(event->context->sim, known, true);
	gpc_sim_mempools_synchronized(event->context->sim, event->context->device);
	return gpc_sim_context_state(event->context);
}

/* ---- memory ---- */

CUresult gpc_sim_mem_alloc(struct gpc_sim_context *context, uint64_t size, uint64_t *ret_ptr)
{
	CUresult res = gpc_sim_context_state(context);

	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_unsafe(context->sim);
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_settle(context->sim);
	return gpc_sim_device_alloc(context->device, context->number, size, ret_ptr);
}

/* The end of the work that a free of this owner's memory waits for; *ret_known: its clock in race.h, or NULL. */
static uint64_t end_before_free(struct gpc_sim *sim, const struct gpc_sim_device *device,
	uint32_t owner, struct gpc_sim_race_clock **ret_known)
{
	uint64_t end = 0;

	if (!sim->config.free_waits_alone) {
		*ret_known = gpc_sim_race_of_device(sim, device->ordinal);
		return atomic_load(&device->tail_ns);
	}
	*ret_known = NULL;
	pthread_mutex_lock(&sim->contexts_lock);
	struct gpc_sim_context *context = find_locked(sim, owner);
	if (context) {
		*ret_known = gpc_sim_race_of_context(context);
		end = atomic_load(&context->tail_ns);
	}
	pthread_mutex_unlock(&sim->contexts_lock);
	return end;
}

/* The device of the allocation that starts at `ptr`, its size and owner; NULL: none starts there. */
static struct gpc_sim_device *find_start(
	struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_size, uint32_t *ret_owner)
{
	struct gpc_sim_device *device = gpc_sim_device_of(sim, ptr);
	uint64_t base;

	if (!device || !gpc_sim_device_find(device, ptr, &base, ret_size, ret_owner) ||
		base != ptr || gpc_sim_ipc_find(sim, ptr, NULL, NULL))
		return NULL;
	return device;
}

CUresult gpc_sim_mem_free_now(struct gpc_sim *sim, uint64_t ptr)
{
	uint64_t size;
	uint32_t owner;
	struct gpc_sim_device *device = find_start(sim, ptr, &size, &owner);

	return device ? gpc_sim_device_free(device, ptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult gpc_sim_mem_free(struct gpc_sim *sim, uint64_t ptr)
{
	struct gpc_sim_race_clock *known;
	struct gpc_sim_device *device;
	uint32_t owner;
	uint64_t size;
	CUresult res = gpc_sim_capture_check_unsafe(sim);

	if (res != CUDA_SUCCESS)
		return res;
	device = find_start(sim, ptr, &size, &owner);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (size < sim->config.free_waits)
		return gpc_sim_device_free(device, ptr);
	gpc_sim_await(sim, end_before_free(sim, device, owner, &known));
	gpc_sim_race_learn(sim, known, true);
	return gpc_sim_device_free(device, ptr);
}
