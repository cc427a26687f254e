/* SPDX-License-Identifier: Apache-2.0 */
/* An array in no order, looked through at each touch: programs have few managed allocations. */
#include "sim/gpu/memory/managed.h"

#include <stdlib.h>

#include "base/saturating.h"
#include "sim/gpu/device.h"
#include "sim/gpu/execution/effect.h"
#include "sim/gpu/execution/stream.h"

void gpc_sim_managed_add(struct gpc_sim_device *device, uint64_t base, uint64_t size)
{
	struct gpc_sim_managed *managed = &device->managed;

	pthread_mutex_lock(&device->lock);
	if (!managed->blocks)
		managed->blocks = calloc(GPC_SIM_MAX_MANAGED, sizeof *managed->blocks);
	if (managed->blocks && managed->n < GPC_SIM_MAX_MANAGED)
		managed->blocks[managed->n++] =
			(struct gpc_sim_managed_block){ .base = base, .size = size };
	pthread_mutex_unlock(&device->lock);
}

void gpc_sim_managed_remove(struct gpc_sim_device *device, uint64_t base)
{
	struct gpc_sim_managed *managed = &device->managed;

	pthread_mutex_lock(&device->lock);
	for (uint32_t i = 0; i < managed->n; i++) {
		if (managed->blocks[i].base != base)
			continue;
		managed->resident -= managed->blocks[i].resident;
		managed->blocks[i] = managed->blocks[--managed->n];
		break;
	}
	pthread_mutex_unlock(&device->lock);
}

void gpc_sim_managed_fini(struct gpc_sim_device *device)
{
	free(device->managed.blocks);
	device->managed = (struct gpc_sim_managed){ 0 };
}

void gpc_sim_managed_squeeze_locked(struct gpc_sim_managed *managed, uint64_t room)
{
	while (managed->resident > room) {
		struct gpc_sim_managed_block *oldest = NULL;
		uint64_t bytes;

		for (uint32_t i = 0; i < managed->n; i++) {
			struct gpc_sim_managed_block *block = &managed->blocks[i];

			if (block->resident && (!oldest || block->touched < oldest->touched))
				oldest = block;
		}
		bytes = gpc_smaller(oldest->resident, managed->resident - room);
		oldest->resident -= bytes;
		managed->resident -= bytes;
	}
}

/* Returns the bytes moved.  What finds no room is used where it is, at the same cost. */
static uint64_t touch_locked(struct gpc_sim_device *device, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_managed *managed = &device->managed;
	uint64_t room = gpc_sim_device_room_locked(device);
	uint64_t moved = 0;

	for (uint32_t i = 0; i < managed->n; i++) {
		struct gpc_sim_managed_block *block = &managed->blocks[i];
		uint64_t before = managed->resident;
		uint64_t missing;

		if (ptr - block->base >= block->size)
			continue;
		missing = gpc_bytes_less(gpc_smaller(size, block->size), block->resident);
		block->touched = ++managed->n_touches;
		block->resident += missing;
		managed->resident += missing;
		gpc_sim_managed_squeeze_locked(managed, room);
		moved += missing + (before + missing - managed->resident);
	}
	return moved;
}

/* Returns the bytes moved. */
static uint64_t touch(struct gpc_sim_device *device, const struct gpc_sim_effect *work)
{
	uint64_t bytes = work->width * (work->rows ? work->rows : 1);
	uint64_t moved = 0;

	pthread_mutex_lock(&device->lock);
	if (device->managed.n && work->kind == GPC_SIM_EFFECT_KERNEL)
		for (unsigned i = 0; i < work->n_ranges; i++)
			moved += touch_locked(device, work->ranges[i].ptr, work->ranges[i].size);
	else if (device->managed.n &&
		 (work->kind == GPC_SIM_EFFECT_COPY || work->kind == GPC_SIM_EFFECT_FILL))
		moved = touch_locked(device, work->dst, bytes) +
			touch_locked(device, work->src, bytes);
	pthread_mutex_unlock(&device->lock);
	return moved;
}

uint64_t gpc_sim_managed_duration(
	const struct gpc_sim_context *context, const struct gpc_sim_effect *work)
{
	double ns_per_mib = (double)context->sim->config.migrate_ns_per_mib;

	if (!work)
		return 0;
	return work->duration_ns +
	       (uint64_t)((double)touch(context->device, work) / (1 << 20) * ns_per_mib);
}
