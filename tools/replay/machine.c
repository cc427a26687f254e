/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counting driver stands in front of the simulated one, and counts each call by kind.
 */
#include "tools/replay/machine.h"

#include <stdlib.h>

#include "driver/driver_pages.h"
#include "format/memory.h"

/* ---- the counting driver ---- */

static struct gpc_driver *inner_of(struct gpc_driver *drv)
{
	return ((struct gpc_counting_driver *)drv)->inner;
}

static struct gpc_driver *count(struct gpc_driver *drv, enum gpc_sim_cost kind)
{
	((struct gpc_counting_driver *)drv)->n_calls[kind]++;
	return inner_of(drv);
}

/* Defines a function of a table that passes its call to `target`, a driver. */
#define FORWARD(type, table, name, target, params, args) \
	static type name params                          \
	{                                                \
		struct gpc_driver *inner = target;       \
                                                         \
		return inner->table->name args;          \
	}

/* Defines such a function, which also counts the call as one of kind `cost`. */
#define COUNTED(table, name, cost, params, args) \
	FORWARD(enum gpc_status, table, name, count(drv, GPC_SIM_COST_##cost), params, args)

/* clang-format off */
FORWARD(uint64_t, ops, now_ns, inner_of(drv), (struct gpc_driver *drv), (inner))
COUNTED(ops, mem_alloc, MALLOC, (struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr), (inner, size, ret_ptr))
COUNTED(ops, mem_free, FREE, (struct gpc_driver *drv, gpc_devptr ptr), (inner, ptr))
FORWARD(enum gpc_status, ops, prepare_beside, inner_of(drv), (struct gpc_driver *drv), (inner)) /* makes a call once */
COUNTED(ops, mem_free_beside, FREE, (struct gpc_driver *drv, gpc_devptr ptr), (inner, ptr))
COUNTED(ops, mem_info, INFO, (struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total), (inner, ret_free, ret_total))
COUNTED(ops, event_create, EVENT_CREATE, (struct gpc_driver *drv, gpc_event *ret_event), (inner, ret_event))
COUNTED(ops, fence_record, RECORD, (struct gpc_driver *drv, gpc_event event), (inner, event))
COUNTED(ops, fence_wait, WAIT, (struct gpc_driver *drv, gpc_event event), (inner, event))
COUNTED(ops, event_query, QUERY, (struct gpc_driver *drv, gpc_event event), (inner, event))
COUNTED(ops, event_wait, SYNC, (struct gpc_driver *drv, gpc_event event), (inner, event))
COUNTED(ops, context_sync, SYNC, (struct gpc_driver *drv), (inner))
COUNTED(ops, legacy_record, RECORD, (struct gpc_driver *drv, gpc_event event), (inner, event))
COUNTED(ops, stream_wait, WAIT, (struct gpc_driver *drv, gpc_stream stream, gpc_event event), (inner, stream, event))
FORWARD(enum gpc_status, pages, reserve, inner_of(drv), (struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr), (inner, size, ret_ptr))
FORWARD(enum gpc_status, pages, open, inner_of(drv), (struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices), (inner, ptr, size, devices))
/* Mapping a page counts as an allocation, unmapping pages as a free. */
COUNTED(pages, map, MALLOC, (struct gpc_driver *drv, gpc_devptr ptr, uint64_t size), (inner, ptr, size))
COUNTED(pages, unmap, FREE, (struct gpc_driver *drv, gpc_devptr ptr, uint64_t size), (inner, ptr, size))
/* clang-format on */

static void event_destroy(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_driver *inner = count(drv, GPC_SIM_COST_EVENT_CREATE);

	inner->ops->event_destroy(inner, event);
}

static void release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	inner_of(drv)->pages->release(inner_of(drv), ptr, size);
}

static const struct gpc_driver_ops counting_ops = GPC_DRIVER_OPS;

static const struct gpc_page_ops counting_page_ops = {
	.reserve = reserve, .release = release, .map = map, .open = open, .unmap = unmap
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
	if (asked->has_work)
		machine->sim->race->is_late = asked->is_late;
	machine->counting.inner = &machine->sim_driver.base;
	machine->counting.base.pages = &counting_page_ops;
	return gpc_sim_driver_init(&machine->sim_driver, machine->sim, 0, NULL);
}

static enum gpc_status create_stream(struct gpc_machine *machine, gpc_stream *ret_stream)
{
	struct gpc_sim_stream *simulated = NULL;
	CUresult result = gpc_sim_stream_create(
		machine->sim_driver.context, CU_STREAM_NON_BLOCKING, 0, &simulated);
	*ret_stream = (uintptr_t)simulated;
	return result == CUDA_SUCCESS ? GPC_OK : GPC_NO_METADATA;
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
	st = open_sim(machine, config);
	inner = machine->counting.inner;
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

	if (inner->ops->mem_info(inner, &free_bytes, &total))
		return 0;
	return machine->free_at_start_bytes - free_bytes;
}

uint64_t gpc_machine_peak_bytes(struct gpc_machine *machine)
{
	return gpc_sim_device_peak_bytes(machine->sim_driver.context->device);
}

static struct gpc_sim_stream *sim_stream(struct gpc_machine *machine, uint32_t i)
{
	if (i == 0)
		return &machine->sim_driver.context->legacy;
	return (struct gpc_sim_stream *)(uintptr_t)machine->streams[i];
}

static enum gpc_status record(struct gpc_machine *machine, uint32_t i, gpc_event event)
{
	return gpc_status_from_device((int)gpc_sim_stream_record(
		sim_stream(machine, i), (struct gpc_sim_event *)(uintptr_t)event));
}

enum gpc_status gpc_machine_record(struct gpc_machine *machine, uint32_t i, gpc_event event)
{
	machine->counting.n_calls[GPC_SIM_COST_RECORD]++;
	return record(machine, i, event);
}

enum gpc_status gpc_machine_create_handle(struct gpc_machine *machine, uint64_t size)
{
	machine->counting.n_calls[GPC_SIM_COST_MALLOC]++;
	return gpc_status_from_device(
		(int)gpc_sim_device_charge(machine->sim_driver.context->device, size));
}

void gpc_machine_release_handle(struct gpc_machine *machine, uint64_t size)
{
	machine->counting.n_calls[GPC_SIM_COST_FREE]++;
	gpc_sim_device_uncharge(machine->sim_driver.context->device, size);
}

/* ---- actions of the program, which are not counted ---- */

void gpc_machine_pass_time(struct gpc_machine *machine, uint64_t duration_ns)
{
	gpc_sim_clock_spend(&machine->sim->clock, duration_ns);
}

enum gpc_status gpc_machine_work(struct gpc_machine *machine, uint32_t stream, uint64_t duration_ns,
	gpc_devptr address, uint64_t size)
{
	return gpc_sim_driver_launch(
		&machine->sim_driver, machine->streams[stream], duration_ns, address, size, -1);
}

enum gpc_status gpc_machine_order(struct gpc_machine *machine, uint32_t stream, uint32_t other)
{
	struct gpc_driver *inner = machine->counting.inner;
	enum gpc_status st;

	st = record(machine, other, machine->event);
	return st ? st : inner->ops->stream_wait(inner, machine->streams[stream], machine->event);
}

void gpc_machine_own(struct gpc_machine *machine, gpc_devptr address, uint64_t size,
	uint64_t number, bool is_of_stream, uint32_t stream)
{
	const struct gpc_sim_race_stack stack = { .n = 1, .frames = { number } };

	if (is_of_stream)
		(void)gpc_sim_race_own_on(
			machine->sim, sim_stream(machine, stream), address, size, &stack);
	else
		(void)gpc_sim_race_own(
			machine->sim, machine->sim_driver.context, address, size, &stack);
}

void gpc_machine_disown(struct gpc_machine *machine, gpc_devptr address)
{
	gpc_sim_race_disown(machine->sim, address);
}

bool gpc_machine_find_race(struct gpc_machine *machine, uint64_t *ret_n, uint64_t *ret_old_owner,
	uint64_t *ret_new_owner)
{
	uint64_t n = gpc_sim_race_n_violations(machine->sim);

	if (n == 0)
		return false;
	*ret_n = n;
	*ret_old_owner = machine->sim->race->violations[0].old_owner.frames[0];
	*ret_new_owner = machine->sim->race->violations[0].new_owner.frames[0];
	return true;
}
