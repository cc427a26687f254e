/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver, and its variants broken on purpose. */
#include <string.h>

#include "driver/driver_pages.h"
#include "tests/prove/prove.h"

static struct prove_driver *self_of(struct gpc_driver *drv)
{
	return (struct prove_driver *)drv;
}

static struct gpc_driver *real_of(struct gpc_driver *drv)
{
	return &self_of(drv)->sim.base;
}

static uint64_t prove_now_ns(struct gpc_driver *drv)
{
	return real_of(drv)->ops->now_ns(real_of(drv));
}

static enum gpc_status prove_mem_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	return real_of(drv)->ops->mem_alloc(real_of(drv), size, ret_ptr);
}

static enum gpc_status prove_mem_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	return real_of(drv)->ops->mem_free(real_of(drv), ptr);
}

static enum gpc_status prove_prepare_beside(struct gpc_driver *drv)
{
	return real_of(drv)->ops->prepare_beside(real_of(drv));
}

static enum gpc_status prove_mem_free_beside(struct gpc_driver *drv, gpc_devptr ptr)
{
	return real_of(drv)->ops->mem_free_beside(real_of(drv), ptr);
}

static enum gpc_status prove_mem_info(
	struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	return real_of(drv)->ops->mem_info(real_of(drv), ret_free, ret_total);
}

static enum gpc_status prove_event_create(struct gpc_driver *drv, gpc_event *ret_event)
{
	struct prove_driver *self = self_of(drv);
	gpc_event event = 0;
	enum gpc_status st = real_of(drv)->ops->event_create(real_of(drv), &event);

	if (st)
		return st;
	pthread_mutex_lock(&self->lock);
	if (self->n_events == self->room_events) {
		self->room_events = self->room_events ? self->room_events * 2 : 64;
		self->events = realloc(self->events, self->room_events * sizeof *self->events);
		if (!self->events)
			abort();
	}
	self->events[self->n_events++] = event;
	pthread_mutex_unlock(&self->lock);
	*ret_event = event;
	return GPC_OK;
}

static void prove_event_destroy(struct gpc_driver *drv, gpc_event event)
{
	struct prove_driver *self = self_of(drv);

	pthread_mutex_lock(&self->lock);
	for (size_t i = 0; i < self->n_events; i++) {
		if (self->events[i] == event) {
			self->events[i] = self->events[--self->n_events];
			break;
		}
	}
	pthread_mutex_unlock(&self->lock);
	real_of(drv)->ops->event_destroy(real_of(drv), event);
}

static enum gpc_status prove_fence_record(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *real = real_of(drv);
	enum gpc_status st;

	if (self_of(drv)->variant == PROVE_NO_BARRIER ||
		(self_of(drv)->variant == PROVE_STALE_BARRIER &&
			atomic_fetch_add(&self_of(drv)->n_records, 1) % 2))
		return GPC_OK;
	if (self_of(drv)->variant == PROVE_LEGACY_FENCE)
		return real->ops->legacy_record(real, event);
	st = real->ops->fence_record(real, event);
	if (st != GPC_UNSUPPORTED && self_of(drv)->variant == PROVE_FAILED_PASSES)
		return GPC_OK;
	return st;
}

static enum gpc_status prove_fence_wait(struct gpc_driver *drv, gpc_event event)
{
	if (self_of(drv)->variant == PROVE_NO_BARRIER)
		return GPC_OK;
	if (self_of(drv)->variant == PROVE_LEGACY_WAIT)
		return real_of(drv)->ops->stream_wait(real_of(drv), 0, event);
	return real_of(drv)->ops->fence_wait(real_of(drv), event);
}

static enum gpc_status prove_event_query(struct gpc_driver *drv, gpc_event event)
{
	if (self_of(drv)->variant == PROVE_EARLY_RETURN)
		return GPC_OK;
	return real_of(drv)->ops->event_query(real_of(drv), event);
}

static enum gpc_status prove_event_wait(struct gpc_driver *drv, gpc_event event)
{
	if (self_of(drv)->variant == PROVE_EARLY_LOOK)
		return GPC_OK;
	return real_of(drv)->ops->event_wait(real_of(drv), event);
}

static enum gpc_status prove_context_sync(struct gpc_driver *drv)
{
	return real_of(drv)->ops->context_sync(real_of(drv));
}

static enum gpc_status prove_legacy_record(struct gpc_driver *drv, gpc_event event)
{
	if (self_of(drv)->variant == PROVE_EARLY_UNMAP)
		return GPC_OK;
	return real_of(drv)->ops->legacy_record(real_of(drv), event);
}

static enum gpc_status prove_stream_wait(struct gpc_driver *drv, gpc_stream stream, gpc_event event)
{
	if (self_of(drv)->variant == PROVE_NO_WAIT)
		return GPC_OK;
	return real_of(drv)->ops->stream_wait(real_of(drv), stream, event);
}

static const struct gpc_driver_ops prove_ops = {
	.now_ns = prove_now_ns,
	.mem_alloc = prove_mem_alloc,
	.mem_free = prove_mem_free,
	.prepare_beside = prove_prepare_beside,
	.mem_free_beside = prove_mem_free_beside,
	.mem_info = prove_mem_info,
	.event_create = prove_event_create,
	.event_destroy = prove_event_destroy,
	.fence_record = prove_fence_record,
	.fence_wait = prove_fence_wait,
	.event_query = prove_event_query,
	.event_wait = prove_event_wait,
	.context_sync = prove_context_sync,
	.legacy_record = prove_legacy_record,
	.stream_wait = prove_stream_wait,
};

static enum gpc_status prove_reserve(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	return real_of(drv)->pages->reserve(real_of(drv), size, ret_ptr);
}

static void prove_release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	real_of(drv)->pages->release(real_of(drv), ptr, size);
}

static enum gpc_status prove_map(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	return real_of(drv)->pages->map(real_of(drv), ptr, size);
}

static enum gpc_status prove_open(
	struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices)
{
	return real_of(drv)->pages->open(real_of(drv), ptr, size, devices);
}

static enum gpc_status prove_unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	return real_of(drv)->pages->unmap(real_of(drv), ptr, size);
}

static const struct gpc_page_ops prove_page_ops = {
	.reserve = prove_reserve,
	.release = prove_release,
	.map = prove_map,
	.open = prove_open,
	.unmap = prove_unmap,
};

bool prove_driver_open(struct prove_driver *drv, struct gpc_sim *sim, enum prove_variant variant)
{
	memset(drv, 0, sizeof *drv);
	drv->base.ops = &prove_ops;
	drv->base.pages = &prove_page_ops;
	drv->variant = variant;
	pthread_mutex_init(&drv->lock, NULL);
	return gpc_sim_driver_init(&drv->sim, sim, 0, NULL) == GPC_OK;
}

/* Those that the pool has forgotten: the driver would have ended them with the context. */
static void end_events(struct prove_driver *drv)
{
	while (drv->n_events > 0)
		drv->sim.base.ops->event_destroy(&drv->sim.base, drv->events[--drv->n_events]);
}

void prove_driver_close(struct prove_driver *drv)
{
	end_events(drv);
	free(drv->events);
	gpc_sim_driver_fini(&drv->sim);
	pthread_mutex_destroy(&drv->lock);
}

void prove_driver_reset(struct prove_driver *drv)
{
	end_events(drv);
	gpc_sim_context_reset(drv->sim.context);
}
