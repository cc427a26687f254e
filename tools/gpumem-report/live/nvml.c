/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes on the watched GPUs: NVML's list of processes, without those whose recordings `live` reads.
 *
 * NVML may use pids of another namespace.  So a list is used only if it contains the watched process for which NVML is
 * asked (oom/neighbours.h).
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "oom/neighbours.h"
#include "tools/gpumem-report/live/processes.h"

static void *open_library(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static struct gpc_nvml *nvml(void)
{
	static const struct gpc_nvml_loader loader = { open_library, dlsym };
	static struct gpc_nvml nvml;
	static bool was_tried;

	if (!was_tried && gpc_nvml_init(&nvml, &loader) != GPC_OK)
		nvml.ready = false;
	was_tried = true;
	return nvml.ready ? &nvml : NULL;
}

static bool is_watched(const struct live *live, uint32_t pid)
{
	for (unsigned p = 0; p < live->n_processes; p++)
		if (live->processes[p].header.pid == pid)
			return true;
	return pid == (uint32_t)getpid();
}

static void keep_others(
	const struct live *live, struct live_others *others, const struct gpc_neighbours *found)
{
	for (uint32_t i = 0; i < found->n_neighbours; i++)
		if (!is_watched(live, found->neighbours[i].pid))
			others->rows[others->n++] = found->neighbours[i];
}

const struct live_others *live_find_others(const struct live *live, const struct live_gpu *gpu)
{
	for (unsigned i = 0; gpu->uuid[0] && i < live->n_others; i++)
		if (strcmp(live->others[i].uuid, gpu->uuid) == 0)
			return &live->others[i];
	return NULL;
}

void live_look_at_others(struct live *live)
{
	live->n_others = 0;
	for (unsigned p = 0; p < live->n_processes; p++) {
		const struct live_process *process = &live->processes[p];

		for (unsigned g = 0; process->state == GPC_RUN_ALIVE && g < process->n_gpus; g++) {
			const struct live_gpu *gpu = &process->gpus[g];
			struct gpc_neighbours found;

			if (!gpu->uuid[0] || live_find_others(live, gpu) ||
				live->n_others == LIVE_MAX_GPUS)
				continue;
			gpc_neighbours_ask(nvml(),
				&(struct gpc_neighbours_query){ .uuid = gpu->uuid,
					.index = -1,
					.own_pid = process->header.pid,
					.proc = "/proc" },
				&found);
			if (found.process_bytes == GPUCACHE_UNKNOWN && found.n_other == 0)
				continue;
			live->others[live->n_others] = (struct live_others){ 0 };
			memcpy(live->others[live->n_others].uuid, gpu->uuid, sizeof gpu->uuid);
			keep_others(live, &live->others[live->n_others++], &found);
		}
	}
}
