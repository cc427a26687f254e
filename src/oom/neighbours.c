/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a bounded number of NVML calls.  NVML writes its list of processes into the buffer of struct gpc_nvml; the list
 * is used only if our own pid is on it, because otherwise its pids are of another namespace.  An insertion sort keeps
 * the largest other processes.  Their names come from /proc, else from NVML.
 */
#include "oom/neighbours.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

/* The largest name requested from NVML, which truncates or refuses longer ones. */
#define NAME_MAX_BYTES 256

/* The unit of process start times on Linux, on every architecture that has CUDA. */
#define TICKS_PER_SECOND 100
#define NS_PER_SECOND    UINT64_C(1000000000)

/*
 * ISO C has no conversion from an object pointer to a function pointer, but POSIX demands that both have
 * the same representation, so its bytes are copied.
 */
static bool resolve(
	const struct gpc_nvml_loader *loader, void *library, const char *name, void *ret_function)
{
	void *address = loader->lookup_in(library, name);

	if (!address)
		return false;
	memcpy(ret_function, &address, sizeof address);
	return true;
}

enum gpc_status gpc_nvml_init(struct gpc_nvml *nvml, const struct gpc_nvml_loader *loader)
{
	struct gpc_io_low low;
	void *library;

	memset(nvml, 0, sizeof *nvml);
	library = loader->open(GPC_NVML_LIBRARY);
	if (!library)
		return GPC_NOT_FOUND;
	if (!resolve(loader, library, "nvmlInit_v2", &nvml->init))
		return GPC_UNSUPPORTED;
	resolve(loader, library, "nvmlDeviceGetHandleByUUID", &nvml->by_uuid);
	resolve(loader, library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci);
	resolve(loader, library, "nvmlDeviceGetHandleByIndex_v2", &nvml->by_index);
	resolve(loader, library, "nvmlDeviceGetIndex", &nvml->index_of);
	resolve(loader, library, "nvmlDeviceGetMemoryInfo_v2", &nvml->memory);
	resolve(loader, library, "nvmlSystemGetProcessName", &nvml->process_name);
	/* Before driver 510, _v2 is the newest and fills the same struct.  The struct of _v1 is smaller. */
	if (!resolve(loader, library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes))
		resolve(loader, library, "nvmlDeviceGetComputeRunningProcesses_v2",
			&nvml->processes);
	if (!nvml->by_uuid && !nvml->by_pci && !nvml->by_index)
		return GPC_UNSUPPORTED;
	low = gpc_io_low_take();
	nvml->ready = nvml->init() == GPC_NVML_SUCCESS;
	gpc_io_low_give_back(&low);
	return nvml->ready ? GPC_OK : GPC_UNSUPPORTED;
}

static struct gpc_nvml_device *find_device(
	const struct gpc_nvml *nvml, const struct gpc_neighbours_query *query)
{
	struct gpc_nvml_device *device = NULL;

	if (query->uuid && query->uuid[0] && nvml->by_uuid &&
		nvml->by_uuid(query->uuid, &device) == GPC_NVML_SUCCESS)
		return device;
	if (query->pci_bus_id && query->pci_bus_id[0] && nvml->by_pci &&
		nvml->by_pci(query->pci_bus_id, &device) == GPC_NVML_SUCCESS)
		return device;
	if (query->index >= 0 && nvml->by_index &&
		nvml->by_index((unsigned)query->index, &device) == GPC_NVML_SUCCESS)
		return device;
	return NULL;
}

static bool read_memory(const struct gpc_nvml *nvml, struct gpc_nvml_device *device,
	struct gpc_nvml_memory *ret_memory)
{
	*ret_memory = (struct gpc_nvml_memory){ .version = GPC_NVML_MEMORY_V2 };
	return nvml->memory && nvml->memory(device, ret_memory) == GPC_NVML_SUCCESS;
}

uint64_t gpc_nvml_idle(
	const struct gpc_nvml *nvml, const struct gpc_neighbours_query *query, uint64_t own_bytes)
{
	struct gpc_nvml_device *device = nvml->ready ? find_device(nvml, query) : NULL;
	struct gpc_nvml_memory memory;

	if (!device || !read_memory(nvml, device, &memory) ||
		gpc_bytes_less(memory.used, own_bytes) > memory.total / GPC_IDLE_PART ||
		memory.available < memory.total / GPC_ROOMY_PART)
		return 0;
	return memory.available;
}

static void ask_memory(
	const struct gpc_nvml *nvml, struct gpc_nvml_device *device, struct gpc_neighbours *found)
{
	struct gpc_nvml_memory memory;

	if (!read_memory(nvml, device, &memory))
		return;
	found->driver_bytes = memory.reserved;
	found->nvml_total_bytes = memory.total;
	found->used_bytes = memory.used;
}

/* Copies the program of a command line from NVML into `name`: the first word, without the directory. */
static void keep_program(const char *command, char *name, size_t size)
{
	size_t len = strcspn(command, " ");
	const char *start = command;

	for (size_t i = 0; i < len; i++) {
		if (command[i] == '/')
			start = command + i + 1;
	}
	gpc_format(name, size, "%.*s", (int)(len - (size_t)(start - command)), start);
}

static void find_name(
	const struct gpc_nvml *nvml, const char *proc, unsigned pid, char *name, size_t size)
{
	char path[NAME_MAX_BYTES];
	char command[NAME_MAX_BYTES];

	gpc_format(path, sizeof path, "%s/%u/comm", proc, pid);
	if (gpc_io_read_file(path, name, size) > 0) {
		name[strcspn(name, "\n")] = '\0';
		return;
	}
	name[0] = '\0';
	if (!nvml->process_name ||
		nvml->process_name(pid, command, sizeof command) != GPC_NVML_SUCCESS)
		return;
	command[sizeof command - 1] = '\0';
	keep_program(command, name, size);
}

/* The age in seconds, at least 1, of a process of this user; 0 if it is another user's or invisible. */
static uint32_t find_own_age(const char *proc, unsigned pid)
{
	uint64_t now = gpc_clock_read(CLOCK_BOOTTIME) / NS_PER_SECOND;
	char path[NAME_MAX_BYTES];
	struct stat status;
	uint64_t start;

	gpc_format(path, sizeof path, "%s/%u", proc, pid);
	if (stat(path, &status) != 0 || status.st_uid != geteuid())
		return 0;
	gpc_format(path, sizeof path, "%s/%u/stat", proc, pid);
	if (!gpc_io_read_start(path, &start))
		return 0;
	start /= TICKS_PER_SECOND;
	return start > now || now - start >= UINT32_MAX ? 0 : (uint32_t)(now - start) + 1;
}

/* Sort order: more bytes first, unknown ones last. */
static bool is_bigger(uint64_t a, uint64_t b)
{
	if (a == GPUCACHE_UNKNOWN)
		return false;
	return b == GPUCACHE_UNKNOWN || a > b;
}

static void add_neighbour(struct gpc_neighbours *found, unsigned pid, uint64_t bytes)
{
	uint32_t at = found->n_neighbours;

	found->n_other++;
	while (at > 0 && is_bigger(bytes, found->neighbours[at - 1].bytes))
		at--;
	if (at == GPUCACHE_MAX_NEIGHBOURS)
		return;
	if (found->n_neighbours < GPUCACHE_MAX_NEIGHBOURS)
		found->n_neighbours++;
	for (uint32_t i = found->n_neighbours - 1; i > at; i--)
		found->neighbours[i] = found->neighbours[i - 1];
	found->neighbours[at] = (struct gpucache_neighbour){ .pid = pid, .bytes = bytes };
}

/* NVML's value for unknown bytes, all ones, is GPUCACHE_UNKNOWN: it makes a sum unknown (gpc_bytes_add). */
static void sort_processes(const struct gpc_nvml_process *infos, uint32_t n, uint32_t own_pid,
	struct gpc_neighbours *found)
{
	bool listed = false;

	for (uint32_t i = 0; i < n; i++)
		listed |= infos[i].pid == own_pid;
	if (!listed)
		return;
	found->process_bytes = 0;
	found->others_bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (infos[i].pid == own_pid) {
			found->process_bytes = gpc_bytes_add(found->process_bytes, infos[i].used);
			continue;
		}
		found->others_bytes = gpc_bytes_add(found->others_bytes, infos[i].used);
		add_neighbour(found, infos[i].pid, infos[i].used);
	}
}

static void ask_processes(struct gpc_nvml *nvml, struct gpc_nvml_device *device,
	const struct gpc_neighbours_query *query, struct gpc_neighbours *found)
{
	unsigned count = GPC_NVML_MAX_PROCESSES;

	if (!nvml->processes || nvml->processes(device, &count, nvml->infos) != GPC_NVML_SUCCESS)
		return;
	if (count > GPC_NVML_MAX_PROCESSES)
		return;
	sort_processes(nvml->infos, count, query->own_pid, found);
	for (uint32_t i = 0; i < found->n_neighbours; i++) {
		struct gpucache_neighbour *one = &found->neighbours[i];

		find_name(nvml, query->proc, one->pid, one->name, sizeof one->name);
		one->own_age_s = find_own_age(query->proc, one->pid);
	}
}

void gpc_neighbours_ask(struct gpc_nvml *nvml, const struct gpc_neighbours_query *query,
	struct gpc_neighbours *ret_neighbours)
{
	struct gpc_neighbours found = {
		.process_bytes = GPUCACHE_UNKNOWN,
		.others_bytes = GPUCACHE_UNKNOWN,
		.driver_bytes = GPUCACHE_UNKNOWN,
		.used_bytes = GPUCACHE_UNKNOWN,
		.nvml_total_bytes = GPUCACHE_UNKNOWN,
		.index = -1,
	};
	unsigned index = 0;
	struct gpc_nvml_device *device = nvml && nvml->ready ? find_device(nvml, query) : NULL;

	if (device) {
		if (nvml->index_of && nvml->index_of(device, &index) == GPC_NVML_SUCCESS)
			found.index = (int)index;
		ask_memory(nvml, device, &found);
		ask_processes(nvml, device, query, &found);
	}
	*ret_neighbours = found;
}
