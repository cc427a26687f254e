/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvidia-ml.so.1: NVML for the simulated devices of this process.
 *
 * The figures come from the stand-in libcuda.so.1 (gpusim_device_info), so that the two agree to the byte:
 *
 *      total = used + free + reserved      (nvmlDeviceGetMemoryInfo_v2; the older call counts reserved as used)
 *      free  = as in cuMemGetInfo          total = as in cuMemGetInfo + reserved
 *      used  = this process + the other processes
 *
 * Functions that have no body here return "Not Supported".
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gpusim.h>

#include "sim/standin/standin.h"

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_UNKNOWN = 999,
};

typedef struct nvmlDevice_st *nvmlDevice_t;

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

/* The element of the list in the oldest version of nvmlDeviceGetComputeRunningProcesses. */
struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long used;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

/* nvmlDeviceGetPciInfo writes only the members before pci_subsystem_id. */
struct nvml_pci {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

/* The caller sets struct nvml_memory_v2.version to the struct's size and, in the top byte, its version. */
#define MEMORY_V2_VERSION ((unsigned int)(sizeof(struct nvml_memory_v2) | (2U << 24)))

/* The functions below have no header here: programs bring NVML's own, or look the functions up. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/*
 * The body of queries for sensors, which the simulated GPU lacks.  Prints nothing, as NVML on a real GPU without them.
 */
int nvml_not_supported(const char *name)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

const struct standin_library standin_library = {
	.name = "libnvidia-ml",
	.not_supported = NVML_ERROR_NOT_SUPPORTED,
	.not_initialized = NVML_ERROR_UNINITIALIZED,
	.failed = NVML_ERROR_UNKNOWN,
};

static int (*device_count)(void);
static int (*device_info)(int device, struct gpusim_device *ret_info);

#pragma GCC visibility push(default)

enum nvml_return nvmlInit_v2(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *count;
	void *info;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	count = dlsym(driver, "gpusim_device_count");
	info = dlsym(driver, "gpusim_device_info");
	if (!count || !info)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	memcpy(&device_count, &count, sizeof count);
	memcpy(&device_info, &info, sizeof info);
	return NVML_SUCCESS;
}

enum nvml_return nvmlInit(void)
{
	return nvmlInit_v2();
}

enum nvml_return nvmlInitWithFlags(unsigned int flags)
{
	return nvmlInit_v2();
}

enum nvml_return nvmlShutdown(void)
{
	return device_count ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* A handle is the device's number + 1. */
static enum nvml_return info_of(
	nvmlDevice_t device, const void *out, struct gpusim_device *ret_info)
{
	if (!device_info)
		return NVML_ERROR_UNINITIALIZED;
	if (!device || !out || device_info((int)(uintptr_t)device - 1, ret_info) != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetCount_v2(unsigned int *n)
{
	if (!device_count)
		return NVML_ERROR_UNINITIALIZED;
	if (!n)
		return NVML_ERROR_INVALID_ARGUMENT;
	*n = (unsigned int)device_count();
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (!device_count)
		return NVML_ERROR_UNINITIALIZED;
	if (!device || index >= (unsigned int)device_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = (nvmlDevice_t)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetCount(unsigned int *n)
{
	return nvmlDeviceGetCount_v2(n);
}

enum nvml_return nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Finds the device with this UUID, or with this PCI address, whose domain may have four or eight digits. */
static enum nvml_return find(const char *text, bool is_uuid, nvmlDevice_t *ret_device)
{
	struct gpusim_device info;
	unsigned domain, bus, slot;
	int n = device_count ? device_count() : 0;

	if (!device_count)
		return NVML_ERROR_UNINITIALIZED;
	if (!text || !ret_device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < n; i++) {
		unsigned own_domain, own_bus, own_slot;
		if (device_info(i, &info) != 0)
			continue;
		bool is_it = is_uuid ? !strcmp(info.uuid, text)
				     : sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3 &&
					       sscanf(info.pci_bus_id, "%x:%x:%x", &own_domain,
						       &own_bus, &own_slot) == 3 &&
					       domain == own_domain && bus == own_bus &&
					       slot == own_slot;
		if (is_it) {
			*ret_device = (nvmlDevice_t)(uintptr_t)(i + 1);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

enum nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *device)
{
	return find(text, false, device);
}

enum nvml_return nvmlDeviceGetHandleByUUID(const char *text, nvmlDevice_t *device)
{
	return find(text, true, device);
}

static enum nvml_return give_text(
	enum nvml_return res, char *text, unsigned int len, const char *value)
{
	if (res != NVML_SUCCESS)
		return res;
	if (strlen(value) >= len)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(text, value, strlen(value) + 1);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned int len)
{
	struct gpusim_device info;

	return give_text(info_of(device, text, &info), text, len, info.name);
}

enum nvml_return nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned int len)
{
	struct gpusim_device info;

	return give_text(info_of(device, text, &info), text, len, info.uuid);
}

enum nvml_return nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, index, &info);

	if (res == NVML_SUCCESS)
		*index = (unsigned int)(uintptr_t)device - 1;
	return res;
}

/* No GPU is on a fabric of NVLink: all fields are zero, and the state is "not supported". */
struct nvml_fabric {
	unsigned char cluster[16];
	enum nvml_return status;
	unsigned int clique;
	unsigned char state;
};

struct nvml_fabric_v {
	unsigned int version;
	struct nvml_fabric fabric; /* later versions have more behind it */
};

enum nvml_return nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, struct nvml_fabric *fabric);
enum nvml_return nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct nvml_fabric_v *fabric);

enum nvml_return nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, struct nvml_fabric *fabric)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, fabric, &info);

	if (res == NVML_SUCCESS)
		memset(fabric, 0, sizeof *fabric);
	return res;
}

enum nvml_return nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct nvml_fabric_v *fabric)
{
	return fabric ? nvmlDeviceGetGpuFabricInfo(device, &fabric->fabric)
		      : NVML_ERROR_INVALID_ARGUMENT;
}

enum nvml_return nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, memory, &info);

	if (res != NVML_SUCCESS)
		return res;
	memory->total = info.total + info.reserved;
	memory->free = info.free;
	memory->used = memory->total - memory->free;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, memory, &info);

	if (res != NVML_SUCCESS)
		return res;
	if (memory->version != MEMORY_V2_VERSION)
		return NVML_ERROR_INVALID_ARGUMENT;
	memory->total = info.total + info.reserved;
	memory->reserved = info.reserved;
	memory->free = info.free;
	memory->used = info.total - info.free;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *n, struct nvml_process *list)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, n, &info);

	if (res != NVML_SUCCESS)
		return res;
	unsigned int has_own = info.own_used > 0;
	unsigned int needed = info.n_processes + has_own;
	unsigned int room = *n;
	*n = needed;
	if (room < needed || (needed && !list))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	const struct nvml_process none = { .gpu_instance = ~0U, .compute_instance = ~0U };
	if (has_own) {
		list[0] = none;
		list[0].pid = (unsigned int)getpid();
		list[0].used = info.own_used;
	}
	for (unsigned int i = 0; i < info.n_processes; i++) {
		list[has_own + i] = none;
		list[has_own + i].pid = info.processes[i].pid;
		list[has_own + i].used = info.processes[i].used;
	}
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetComputeRunningProcesses_v2(
	nvmlDevice_t device, unsigned int *n, struct nvml_process *list)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, n, list);
}

enum nvml_return nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned int *n, struct nvml_process_v1 *list)
{
	struct nvml_process all[1 + 8];
	unsigned int room = sizeof all / sizeof all[0];
	enum nvml_return res = n ? nvmlDeviceGetComputeRunningProcesses_v3(device, &room, all)
				 : NVML_ERROR_INVALID_ARGUMENT;

	if (res != NVML_SUCCESS)
		return res;
	bool has_room = *n >= room && (list || !room);
	*n = room;
	for (unsigned int i = 0; has_room && i < room; i++)
		list[i] = (struct nvml_process_v1){ .pid = all[i].pid, .used = all[i].used };
	return has_room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* No process uses graphics. */
enum nvml_return nvmlDeviceGetGraphicsRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *n, void *list)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, n, &info);

	if (res == NVML_SUCCESS)
		*n = 0;
	return res;
}

enum nvml_return nvmlDeviceGetGraphicsRunningProcesses_v2(
	nvmlDevice_t device, unsigned int *n, void *list)
{
	return nvmlDeviceGetGraphicsRunningProcesses_v3(device, n, list);
}

enum nvml_return nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t device, unsigned int *n, void *list)
{
	return nvmlDeviceGetGraphicsRunningProcesses_v3(device, n, list);
}

enum nvml_return nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct nvml_pci *pci)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, pci, &info);

	if (res != NVML_SUCCESS)
		return res;
	memset(pci, 0, sizeof *pci);
	if (sscanf(info.pci_bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3)
		return NVML_ERROR_UNKNOWN;
	snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%.15s", info.pci_bus_id);
	snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus,
		pci->device);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetPciInfo(nvmlDevice_t device, void *pci)
{
	struct nvml_pci whole;
	enum nvml_return res = nvmlDeviceGetPciInfo_v3(device, pci ? &whole : NULL);

	if (res == NVML_SUCCESS)
		memcpy(pci, &whole, offsetof(struct nvml_pci, pci_subsystem_id));
	return res;
}

enum nvml_return nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	struct gpusim_device info;
	enum nvml_return res = info_of(device, major, &info);

	if (res == NVML_SUCCESS) {
		*major = info.major;
		*minor = info.minor;
	}
	return res;
}

enum nvml_return nvmlSystemGetCudaDriverVersion(int *version)
{
	struct gpusim_device info;

	if (!device_info)
		return NVML_ERROR_UNINITIALIZED;
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (device_info(0, &info) != 0)
		return NVML_ERROR_UNKNOWN;
	*version = info.driver_version;
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return nvmlSystemGetCudaDriverVersion(version);
}

enum nvml_return nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int len)
{
	struct gpusim_device info;

	if (!device_info)
		return NVML_ERROR_UNINITIALIZED;
	if (!text)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; device_info(0, &info) == 0 && i < (int)info.n_processes; i++)
		if (info.processes[i].pid == pid)
			return give_text(NVML_SUCCESS, text, len, info.processes[i].name);
	if (pid != (unsigned int)getpid())
		return NVML_ERROR_NOT_FOUND;
	char self[256] = "";
	ssize_t got = readlink("/proc/self/exe", self, sizeof self - 1);
	return got > 0 ? give_text(NVML_SUCCESS, text, len, self) : NVML_ERROR_UNKNOWN;
}

enum nvml_return nvmlSystemGetDriverVersion(char *text, unsigned int len)
{
	return give_text(text ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT, text, len, "580.00.00");
}

const char *nvmlErrorString(enum nvml_return code)
{
	switch (code) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_ERROR_UNKNOWN:
		break;
	}
	return "Unknown Error";
}

#pragma GCC visibility pop
