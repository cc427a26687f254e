/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the simulated or the real struct gpc_driver, and counts each call by kind. */
#include "tools/replay/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "driver/driver_pages.h"
#include "format/memory.h"

/* ---- the counting driver ---- */

static struct gpc_driver *count(struct gpc_driver *drv, enum gpc_sim_cost kind)
{
	struct gpc_counting_driver *counting = (struct gpc_counting_driver *)drv;

	counting->n_calls[kind]++;
	return counting->inner;
}

static uint64_t now_ns(struct gpc_driver *drv)
{
	struct gpc_driver *inner = ((struct gpc_counting_driver *)drv)->inner;

	return inner->ops->now_ns(inner);
}

static enum gpc_status mem_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_MALLOC);

	return inner->ops->mem_alloc(inner, size, ret_ptr);
}

static enum gpc_status mem_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_FREE);

	return inner->ops->mem_free(inner, ptr);
}

static enum gpc_status mem_info(struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_INFO);

	return inner->ops->mem_info(inner, ret_free, ret_total);
}

static enum gpc_status event_create(struct gpc_driver *drv, gpc_event *ret_event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_EVENT_CREATE);

	return inner->ops->event_create(inner, ret_event);
}

static void event_destroy(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_EVENT_CREATE);

	inner->ops->event_destroy(inner, event);
}

static enum gpc_status fence_record(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_RECORD);

	return inner->ops->fence_record(inner, event);
}

static enum gpc_status fence_wait(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_WAIT);

	return inner->ops->fence_wait(inner, event);
}

static enum gpc_status event_query(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_QUERY);

	return inner->ops->event_query(inner, event);
}

static enum gpc_status event_wait(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_SYNC);

	return inner->ops->event_wait(inner, event);
}

static enum gpc_status context_sync(struct gpc_driver *drv)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_SYNC);

	return inner->ops->context_sync(inner);
}

static enum gpc_status legacy_record(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_RECORD);

	return inner->ops->legacy_record(inner, event);
}

static enum gpc_status stream_wait(struct gpc_driver *drv, gpc_stream stream, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_WAIT);

	return inner->ops->stream_wait(inner, stream, event);
}

static const struct gpc_driver_ops counting_ops = GPC_DRIVER_OPS;

/* ---- its pages: mapping and unmapping count as memory taken and returned; addresses are free ---- */

static struct gpc_driver *inner_of(struct gpc_driver *drv)
{
	return ((struct gpc_counting_driver *)drv)->inner;
}

static enum gpc_status reserve(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	return inner_of(drv)->pages->reserve(inner_of(drv), size, ret_ptr);
}

static void release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	inner_of(drv)->pages->release(inner_of(drv), ptr, size);
}

static enum gpc_status map(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_MALLOC);

	return inner->pages->map(inner, ptr, size);
}

static enum gpc_status open_pages(
	struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices)
{
	return inner_of(drv)->pages->open(inner_of(drv), ptr, size, devices);
}

static enum gpc_status unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_FREE);

	return inner->pages->unmap(inner, ptr, size);
}

static const struct gpc_page_ops counting_page_ops = {
	.reserve = reserve,
	.release = release,
	.map = map,
	.open = open_pages,
	.unmap = unmap,
};

/* ---- opening and closing ---- */

static enum gpc_status open_sim(struct gpc_machine *machine, const struct gpc_machine_config *asked)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.memory = asked->device_bytes;
	config.context_cost = 0;
	config.virtual_clock = true;
	config.is_numbers_only = true;
	if (asked->fixed_bytes) {
		config.n_processes = 1;
		config.processes[0].bytes = asked->fixed_bytes;
	}
	machine->sim = gpc_sim_create(&config);
	if (!machine->sim || (asked->has_work && !gpc_sim_race_attach(machine->sim)))
		return GPC_NO_METADATA;
	machine->counting.inner = &machine->sim_driver.base;
	machine->counting.base.pages = &counting_page_ops;
	return gpc_sim_driver_init(&machine->sim_driver, machine->sim, 0, NULL);
}

static enum gpc_status create_stream(struct gpc_machine *machine, gpc_stream *ret_stream)
{
	struct gpc_sim_stream *stream = NULL;

	if (machine->gpu)
		return gpc_gpu_stream_create(machine->gpu, ret_stream);
	if (gpc_sim_stream_create(machine->sim_driver.context, CU_STREAM_NON_BLOCKING, 0,
		    &stream) != CUDA_SUCCESS)
		return GPC_NO_METADATA;
	*ret_stream = (uintptr_t)stream;
	return GPC_OK;
}

static enum gpc_status create_streams(struct gpc_machine *machine, uint32_t n)
{
	enum gpc_status st = GPC_OK;

	machine->streams = gpc_new(n + 1, sizeof *machine->streams);
	for (machine->n_streams = 1; machine->n_streams < n && !st;) {
		st = create_stream(machine, &machine->streams[machine->n_streams]);
		machine->n_streams += !st;
	}
	return st;
}

enum gpc_status gpc_machine_open(
	struct gpc_machine *machine, const struct gpc_machine_config *config)
{
	struct gpc_driver *inner;
	enum gpc_status st;

	*machine = (struct gpc_machine){ .counting.base.ops = &counting_ops };
	machine->driver = &machine->counting.base;
	if (config->is_real)
		st = gpc_gpu_open(config->gpu, &machine->gpu, &machine->counting.inner);
	else
		st = open_sim(machine, config);
	inner = machine->counting.inner;
	if (!st && config->is_real && config->fixed_bytes)
		st = inner->ops->mem_alloc(inner, config->fixed_bytes, &machine->ballast);
	if (!st)
		st = create_streams(machine, config->n_streams);
	if (!st)
		st = inner->ops->event_create(inner, &machine->event);
	if (!st)
		st = inner->ops->mem_info(
			inner, &machine->free_at_start_bytes, &machine->device_bytes);
	if (st)
		gpc_machine_close(machine);
	return st;
}

void gpc_machine_close(struct gpc_machine *machine)
{
	struct gpc_driver *inner = machine->counting.inner;

	if (machine->event)
		inner->ops->event_destroy(inner, machine->event);
	if (machine->ballast)
		(void)!inner->ops->mem_free(inner, machine->ballast);
	for (uint32_t i = 1; machine->gpu && i < machine->n_streams; i++)
		gpc_gpu_stream_destroy(machine->gpu, machine->streams[i]);
	if (machine->gpu)
		gpc_gpu_close(machine->gpu);
	/* The simulated streams end with their context. */
	if (machine->sim_driver.context)
		gpc_sim_driver_fini(&machine->sim_driver);
	if (machine->sim)
		gpc_sim_destroy(machine->sim);
	free(machine->streams);
}

uint64_t gpc_machine_reserved_bytes(struct gpc_machine *machine)
{
	struct gpc_driver *inner = machine->counting.inner;
	uint64_t free_bytes = 0;
	uint64_t total = 0;

	/* On a real GPU other processes may have freed memory that they held at the start. */
	if (inner->ops->mem_info(inner, &free_bytes, &total) ||
		free_bytes > machine->free_at_start_bytes)
		return 0;
	return machine->free_at_start_bytes - free_bytes;
}

uint64_t gpc_machine_peak_bytes(struct gpc_machine *machine)
{
	if (machine->gpu)
		return machine->device_bytes;
	return gpc_sim_device_peak_bytes(machine->sim_driver.context->device);
}

static struct gpc_sim_stream *sim_stream(struct gpc_machine *machine, uint32_t i)
{
	if (i == 0)
		return &machine->sim_driver.context->legacy;
	return (struct gpc_sim_stream *)(uintptr_t)machine->streams[i];
}

enum gpc_status gpc_machine_record(struct gpc_machine *machine, uint32_t i, gpc_event event)
{
	CUresult result;

	machine->counting.n_calls[GPC_SIM_COST_RECORD]++;
	if (machine->gpu)
		return gpc_gpu_record(machine->gpu, machine->streams[i], event);
	result = gpc_sim_stream_record(
		sim_stream(machine, i), (struct gpc_sim_event *)(uintptr_t)event);
	return gpc_status_from_device((int)result);
}

enum gpc_status gpc_machine_create_handle(struct gpc_machine *machine, uint64_t size)
{
	if (!machine->sim)
		return GPC_UNSUPPORTED;
	machine->counting.n_calls[GPC_SIM_COST_MALLOC]++;
	return gpc_status_from_device(
		(int)gpc_sim_device_charge(machine->sim_driver.context->device, size));
}

void gpc_machine_release_handle(struct gpc_machine *machine, uint64_t size)
{
	machine->counting.n_calls[GPC_SIM_COST_FREE]++;
	gpc_sim_device_uncharge(machine->sim_driver.context->device, size);
}

/* ---- actions of the program ---- */

void gpc_machine_expect_late(struct gpc_machine *machine, bool is_late)
{
	if (machine->sim && machine->sim->race)
		machine->sim->race->is_late = is_late;
}

void gpc_machine_pass_time(struct gpc_machine *machine, uint64_t duration_ns)
{
	if (machine->sim)
		gpc_sim_clock_spend(&machine->sim->clock, duration_ns);
}

enum gpc_status gpc_machine_work(struct gpc_machine *machine, uint32_t stream, uint64_t duration_ns,
	gpc_devptr address, uint64_t size)
{
	if (!machine->sim)
		return GPC_OK;
	return gpc_sim_driver_launch(
		&machine->sim_driver, machine->streams[stream], duration_ns, address, size, -1);
}

enum gpc_status gpc_machine_order(struct gpc_machine *machine, uint32_t stream, uint32_t other)
{
	struct gpc_driver *inner = machine->counting.inner;
	enum gpc_status st;

	if (!machine->sim)
		return GPC_OK;
	st = gpc_machine_record(machine, other, machine->event);
	machine->counting.n_calls[GPC_SIM_COST_RECORD]--; /* this record was the program's */
	return st ? st : inner->ops->stream_wait(inner, machine->streams[stream], machine->event);
}

enum gpc_status gpc_machine_sync(struct gpc_machine *machine)
{
	struct gpc_driver *inner = machine->counting.inner;

	return inner->ops->context_sync(inner);
}

void gpc_machine_own(struct gpc_machine *machine, gpc_devptr address, uint64_t size,
	uint64_t number, bool is_of_stream, uint32_t stream)
{
	const struct gpc_sim_race_stack stack = { .n = 1, .frames = { number } };

	if (!machine->sim)
		return;
	if (is_of_stream)
		(void)gpc_sim_race_own_on(
			machine->sim, sim_stream(machine, stream), address, size, &stack);
	else
		(void)gpc_sim_race_own(
			machine->sim, machine->sim_driver.context, address, size, &stack);
}

void gpc_machine_disown(struct gpc_machine *machine, gpc_devptr address)
{
	if (machine->sim)
		gpc_sim_race_disown(machine->sim, address);
}

bool gpc_machine_find_race(struct gpc_machine *machine, uint64_t *ret_n, uint64_t *ret_old_owner,
	uint64_t *ret_new_owner)
{
	uint64_t n = machine->sim ? gpc_sim_race_n_violations(machine->sim) : 0;

	if (n == 0)
		return false;
	*ret_n = n;
	*ret_old_owner = machine->sim->race->violations[0].old_owner.frames[0];
	*ret_new_owner = machine->sim->race->violations[0].new_owner.frames[0];
	return true;
}
