/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys the parts of a machine in order; finds the device of an address by comparing ranges. */
#include "sim/gpu/sim.h"

#include <stdlib.h>

struct gpc_sim *gpc_sim_create(const struct gpc_sim_config *config)
{
	unsigned n = 0;

	if (config->n_devices > GPC_SIM_MAX_DEVICES || config->n_faults > GPC_SIM_MAX_FAULTS)
		return NULL;
	struct gpc_sim *sim = calloc(1, sizeof *sim);
	if (!sim)
		return NULL;
	sim->config = *config;
	for (; n < config->n_devices; n++)
		if (!gpc_sim_device_init(&sim->devices[n], config, n))
			goto undo_devices;
	if (!gpc_sim_vmm_init(&sim->vmm, config->memory * (n ? n : 1), config->is_numbers_only))
		goto undo_devices;
	if (!gpc_sim_data_init(sim))
		goto undo_vmm;
	gpc_sim_clock_init(&sim->clock, config->virtual_clock);
	gpc_sim_effects_init(&sim->effects);
	gpc_sim_faults_init(&sim->faults, config);
	gpc_sim_graph_memory_init(sim);
	gpc_list_init(&sim->captures);
	pthread_mutex_init(&sim->capture_lock, NULL);
	gpc_list_init(&sim->contexts);
	pthread_mutex_init(&sim->contexts_lock, NULL);
	gpc_list_init(&sim->opened);
	pthread_mutex_init(&sim->ipc_lock, NULL);
	if (!gpc_sim_mempools_init(sim)) {
		gpc_sim_destroy(sim);
		return NULL;
	}
	return sim;

undo_vmm:
	gpc_sim_vmm_fini(&sim->vmm);
undo_devices:
	while (n-- > 0)
		gpc_sim_device_fini(&sim->devices[n]);
	free(sim);
	return NULL;
}

void gpc_sim_destroy(struct gpc_sim *sim)
{
	if (!sim)
		return;
	gpc_sim_effects_fini(&sim->effects);
	gpc_sim_mempools_fini(sim);
	gpc_sim_graph_memory_fini(sim);
	gpc_sim_race_destroy(sim);
	gpc_sim_data_fini(sim);
	gpc_sim_vmm_fini(&sim->vmm);
	for (unsigned i = 0; i < sim->config.n_devices; i++)
		gpc_sim_device_fini(&sim->devices[i]);
	pthread_mutex_destroy(&sim->faults.lock);
	pthread_mutex_destroy(&sim->capture_lock);
	pthread_mutex_destroy(&sim->contexts_lock);
	pthread_mutex_destroy(&sim->ipc_lock);
	free(sim);
}

struct gpc_sim_device *gpc_sim_device_of(struct gpc_sim *sim, uint64_t ptr)
{
	for (unsigned i = 0; i < sim->config.n_devices; i++)
		if (gpc_sim_device_has(&sim->devices[i], ptr))
			return &sim->devices[i];
	return NULL;
}

uint64_t gpc_sim_number_of(struct gpc_sim_device *device, uint64_t ptr)
{
	const struct gpc_sim_chunk *chunk;
	uint64_t number;
	uint64_t base;

	if (!gpc_sim_device_find(device, ptr, &base, NULL, NULL))
		return 0;
	base -= device->base;
	pthread_mutex_lock(&device->lock);
	chunk = &device->chunks[base / GPC_SIM_CHUNK];
	number = chunk->state == GPC_SIM_CHUNK_SMALL
			 ? chunk->small->number[base % GPC_SIM_CHUNK / GPC_SIM_SLOT]
			 : chunk->number;
	pthread_mutex_unlock(&device->lock);
	return number;
}

void *gpc_sim_bytes(struct gpc_sim *sim, uint64_t ptr)
{
	const struct gpc_sim_device *device = gpc_sim_device_of(sim, ptr);

	if (gpc_sim_vmm_has(&sim->vmm, ptr))
		return gpc_sim_vmm_bytes(&sim->vmm, ptr);
	ptr = gpc_sim_mempool_target(sim, ptr);
	return device ? gpc_sim_device_bytes(device, ptr) : (void *)(uintptr_t)ptr;
}

bool gpc_sim_is_valid(struct gpc_sim *sim, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_device *device = gpc_sim_device_of(sim, ptr);
	uint64_t base;
	uint64_t has;

	if (gpc_sim_vmm_has(&sim->vmm, ptr))
		return gpc_sim_vmm_may(&sim->vmm, ptr, size, -1, false);
	if (!device)
		return true;
	return gpc_sim_device_find(device, ptr, &base, &has, NULL) && size <= has - (ptr - base);
}

bool gpc_sim_may_touch(
	struct gpc_sim *sim, int device, uint64_t ptr, uint64_t size, bool must_write)
{
	if (gpc_sim_vmm_has(&sim->vmm, ptr))
		return gpc_sim_vmm_may(&sim->vmm, ptr, size, device, must_write);
	return gpc_sim_is_valid(sim, ptr, size);
}
