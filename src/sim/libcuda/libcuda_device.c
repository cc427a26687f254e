/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: devices, queries of contexts, and gpusim_device_info. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/libcuda/face.h"

static const char *device_name(void)
{
	return face_sim()->config.model->name;
}

static CUresult enter_device(const char *entry, CUdevice dev, const void *out)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return face_has_device(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = face_sim()->config.driver_version;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult res = enter_device("cuDeviceGet", ordinal, device);

	if (res == CUDA_SUCCESS)
		*device = ordinal;
	return res;
}

CUresult cuDeviceGetCount(int *n)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuDeviceGetCount", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*n = (int)face_sim()->config.n_devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceGetName", dev, name);

	if (res == CUDA_SUCCESS)
		snprintf(name, (size_t)len, "%s", device_name());
	return res;
}

/* The number by which the program knows the machine's device `physical`; -1 if that is hidden. */
static CUdevice visible_of(unsigned physical)
{
	const struct gpc_sim_config *config = &face_sim()->config;

	for (unsigned i = 0; i < config->n_devices; i++)
		if (config->physical[i] == physical)
			return (CUdevice)i;
	return -1;
}

static void uuid_of(unsigned device, unsigned char *ret_bytes)
{
	static const unsigned char first[16] = { 0x67, 0x70, 0x75, 0x73, 0x69, 0x6d, 0x40, 0,
		0x80 };

	memcpy(ret_bytes, first, 16);
	ret_bytes[15] = (unsigned char)(device + 1);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceGetUuid_v2", dev, uuid);

	if (res == CUDA_SUCCESS)
		uuid_of(face_sim()->config.physical[dev], (unsigned char *)uuid->bytes);
	return res;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice dev)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceTotalMem_v2", dev, bytes);

	if (res == CUDA_SUCCESS)
		*bytes = face_sim()->config.memory;
	return res;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Attributes that all models share; 0 if no row names them. */
static int common_attribute(CUdevice_attribute attribute)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} table[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
		{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000 },
		{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
		{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
		{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
	};

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].attribute == attribute)
			return table[i].value;
	return 0;
}

static int attribute_of(CUdevice_attribute attribute, CUdevice dev)
{
	const struct gpc_sim_model *model = face_sim()->config.model;

	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return (int)face_sim()->config.physical[dev] + 1;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return model->sms;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return model->major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return model->minor;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		return model->l2_bytes;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
		return model->bus_bits;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return model->threads_per_sm;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		return model->blocks_per_sm;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return model->shared_per_block;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		return model->shared_per_sm;
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
		return !face_sim()->config.is_managed_pinned;
	case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
		return model->major >= 9;
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
	case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
		return face_sim()->config.is_host_near;
	default:
		return common_attribute(attribute);
	}
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceGetAttribute", dev, value);

	if (res == CUDA_SUCCESS && (int)attribute <= 0)
		res = CUDA_ERROR_INVALID_VALUE;
	if (res == CUDA_SUCCESS)
		*value = attribute_of(attribute, dev);
	return res;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceComputeCapability", dev, major);

	if (res == CUDA_SUCCESS) {
		*major = face_sim()->config.model->major;
		*minor = face_sim()->config.model->minor;
	}
	return res;
}

CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice dev)
{
	CUresult res = enter_device("cuDeviceGetPCIBusId", dev, text);

	if (res == CUDA_SUCCESS)
		snprintf(text, (size_t)len, "0000:%02X:00.0", face_sim()->config.physical[dev] + 1);
	return res;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *text)
{
	unsigned domain, bus, slot;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuDeviceGetByPCIBusId", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!dev || !text)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = visible_of(bus - 1);
	return *dev < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult res = enter_device("cuDeviceCanAccessPeer", dev, can);

	if (res == CUDA_SUCCESS)
		res = enter_device("cuDeviceCanAccessPeer", peer, can);
	if (res == CUDA_SUCCESS)
		*can = dev != peer;
	return res;
}

/* ---- queries of contexts ---- */

CUresult cuCtxGetDevice(CUdevice *dev)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxGetDevice", &context);

	if (res == CUDA_SUCCESS)
		*dev = (CUdevice)context->device->ordinal;
	return res;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx)
{
	if (!ctx)
		return cuCtxGetDevice(dev);
	*dev = (CUdevice)face_context(ctx)->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxGetFlags", &context);

	if (res == CUDA_SUCCESS)
		*flags = context->flags;
	return res;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxGetId", &context);

	if (res == CUDA_SUCCESS || ctx) {
		*id = (ctx ? face_context(ctx) : context)->number;
		res = CUDA_SUCCESS;
	}
	return res;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxEnablePeerAccess", &context);

	if (res != CUDA_SUCCESS)
		return res;
	return !peer ? CUDA_ERROR_INVALID_CONTEXT : flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	return cuCtxEnablePeerAccess(peer, 0);
}

/* ---- for the stand-in libnvidia-ml ---- */

int gpusim_device_count(void)
{
	return (int)face_sim()->config.n_physical;
}

/* `device` is a number of the machine, which also counts hidden devices.  This process uses no memory of those. */
int gpusim_device_info(int device, struct gpusim_device *ret_info)
{
	struct gpc_sim *sim = face_sim();
	unsigned char uuid[16];
	CUdevice own = visible_of((unsigned)device);

	if (device < 0 || (unsigned)device >= sim->config.n_physical)
		return -1;
	memset(ret_info, 0, sizeof *ret_info);
	uuid_of((unsigned)device, uuid);
	snprintf(ret_info->name, sizeof ret_info->name, "%s", device_name());
	snprintf(ret_info->uuid, sizeof ret_info->uuid,
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0],
		uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9],
		uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
	snprintf(ret_info->pci_bus_id, sizeof ret_info->pci_bus_id, "0000:%02X:00.0",
		(unsigned)device + 1);
	gpc_sim_settle(sim);
	ret_info->total = sim->config.memory;
	ret_info->free =
		own < 0 ? sim->config.memory : gpc_sim_device_free_bytes(&sim->devices[own]);
	ret_info->reserved = sim->config.reserved;
	ret_info->own_used = own < 0 ? 0 : gpc_sim_device_used_bytes(&sim->devices[own]);
	ret_info->major = sim->config.model->major;
	ret_info->minor = sim->config.model->minor;
	ret_info->driver_version = sim->config.driver_version;
	ret_info->n_processes = sim->config.n_processes;
	for (unsigned i = 0; i < sim->config.n_processes; i++) {
		ret_info->processes[i].pid = sim->config.processes[i].pid;
		ret_info->processes[i].used = sim->config.processes[i].bytes;
		memcpy(ret_info->processes[i].name, sim->config.processes[i].name,
			sizeof ret_info->processes[i].name);
	}
	return 0;
}
