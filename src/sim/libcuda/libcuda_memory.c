/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: device, pinned and managed memory, pointer queries. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "sim/gpu/memory/ipc.h"
#include "sim/libcuda/face.h"

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemAlloc_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	res = gpc_sim_mem_alloc(context, size, &address);
	if (res == CUDA_SUCCESS)
		*ptr = address;
	return res;
}

/* The alignment of rows on current devices. */
#define PITCH 512

CUresult cuMemAllocPitch_v2(
	CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int element)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemAllocPitch_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address;
	uint64_t row = gpc_round_up(width, PITCH);
	res = gpc_sim_mem_alloc(context, row * height, &address);
	if (res != CUDA_SUCCESS)
		return res;
	*ptr = address;
	*pitch = row;
	return CUDA_SUCCESS;
}

/* ---- host memory that the driver knows ---- */

static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static struct face_host *hosts;
static size_t n_hosts, room_hosts;

static bool host_add(const struct face_host *block)
{
	bool has_room = true;

	pthread_mutex_lock(&host_lock);
	if (n_hosts == room_hosts) {
		size_t room = room_hosts ? room_hosts * 2 : 64;
		struct face_host *grown = realloc(hosts, room * sizeof *grown);
		has_room = grown != NULL;
		if (grown) {
			hosts = grown;
			room_hosts = room;
		}
	}
	if (has_room)
		hosts[n_hosts++] = *block;
	pthread_mutex_unlock(&host_lock);
	return has_room;
}

bool face_host_find(uint64_t ptr, struct face_host *ret_block)
{
	bool found = false;

	pthread_mutex_lock(&host_lock);
	for (size_t i = 0; i < n_hosts && !found; i++) {
		found = ptr - hosts[i].base < hosts[i].size;
		if (found && ret_block)
			*ret_block = hosts[i];
	}
	pthread_mutex_unlock(&host_lock);
	return found;
}

/* Forgets the block of that kind that starts at `base`. */
static bool host_remove(uint64_t base, enum face_host_kind kind, struct face_host *ret_block)
{
	bool found = false;

	pthread_mutex_lock(&host_lock);
	for (size_t i = 0; i < n_hosts && !found; i++) {
		found = hosts[i].base == base && hosts[i].kind == kind;
		if (found) {
			*ret_block = hosts[i];
			hosts[i] = hosts[--n_hosts];
		}
	}
	pthread_mutex_unlock(&host_lock);
	return found;
}

static CUresult host_map(struct gpc_sim_context *context, size_t size, enum face_host_kind kind,
	unsigned flags, void **ret_ptr)
{
	struct face_host block = { .size = size,
		.kind = kind,
		.flags = flags,
		.context = context,
		.device = context->device };
	CUresult res = gpc_sim_capture_check_unsafe(face_sim());

	if (res != CUDA_SUCCESS)
		return res;
	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block.base = (uintptr_t)ptr;
	if (!host_add(&block)) {
		munmap(ptr, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_ptr = ptr;
	return CUDA_SUCCESS;
}

static CUresult host_unmap(struct gpc_sim_context *context, uint64_t base, enum face_host_kind kind)
{
	struct face_host block;

	if (!host_remove(base, kind, &block))
		return CUDA_ERROR_INVALID_VALUE;
	if (context)
		(void)gpc_sim_context_sync(context);
	if (kind == FACE_HOST_MANAGED)
		gpc_sim_managed_remove(block.device, base);
	munmap((void *)(uintptr_t)block.base, block.size);
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemHostAlloc", &context);

	if (res != CUDA_SUCCESS)
		return res;
	return ptr ? host_map(context, size, FACE_HOST_PINNED, flags, ptr)
		   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	return cuMemHostAlloc(ptr, size, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
}

CUresult cuMemAllocHost(void **ptr, unsigned int size)
{
	return cuMemAllocHost_v2(ptr, size);
}

CUresult cuMemFreeHost(void *ptr)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemFreeHost", &context);

	return res == CUDA_SUCCESS ? host_unmap(context, (uintptr_t)ptr, FACE_HOST_PINNED) : res;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	struct gpc_sim_context *context;
	void *address;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemAllocManaged", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	res = host_map(context, size, FACE_HOST_MANAGED, flags, &address);
	if (res != CUDA_SUCCESS)
		return res;
	*ptr = (uintptr_t)address;
	gpc_sim_managed_add(context->device, *ptr, size);
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemHostRegister_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (face_host_find((uintptr_t)ptr, NULL))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	struct face_host block = { .base = (uintptr_t)ptr,
		.size = size,
		.kind = FACE_HOST_REGISTERED,
		.flags = flags,
		.context = context };
	return host_add(&block) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return cuMemHostRegister_v2(ptr, size, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
	struct gpc_sim_context *context;
	struct face_host block;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemHostUnregister", &context);

	if (res != CUDA_SUCCESS)
		return res;
	return host_remove((uintptr_t)ptr, FACE_HOST_REGISTERED, &block)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemHostGetDevicePointer_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || flags || !face_host_find((uintptr_t)host, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	*ptr = (uintptr_t)host;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct face_host block;

	if (!flags || !face_host_find((uintptr_t)host, &block))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = block.flags;
	return CUDA_SUCCESS;
}

/* ---- free and queries ---- */

/*
 * The address identifies the context, so the thread needs no current context; but if it has a broken one, this fails.
 */
CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct gpc_sim_context *context = face_current();
	struct face_host block;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemFree_v2", context ? &context : NULL);

	if (res != CUDA_SUCCESS || ptr == 0)
		return res;
	if (face_host_find(ptr, &block) && block.kind == FACE_HOST_MANAGED)
		return host_unmap(context, ptr, FACE_HOST_MANAGED);
	if (gpc_sim_vmm_has(&face_sim()->vmm, ptr))
		return face_free_mapped(ptr);
	res = gpc_sim_capture_check_unsafe(face_sim());
	if (res != CUDA_SUCCESS || face_pool_free(ptr, &res))
		return res;
	return gpc_sim_mem_free(face_sim(), ptr);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemGetInfo_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_settle(face_sim());
	if (free_bytes)
		*free_bytes = gpc_sim_device_free_bytes(context->device);
	if (total)
		*total = context->device->memory;
	return CUDA_SUCCESS;
}

/* Finds the allocation that contains `ptr`, in mapped memory, a pool, imported memory, a device or the host. */
static bool range_of(uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size)
{
	struct gpc_sim_device *device = gpc_sim_device_of(face_sim(), ptr);
	struct gpc_sim_vmm *vmm = &face_sim()->vmm;
	struct face_host block;
	uint64_t handle;

	if (gpc_sim_vmm_has(vmm, ptr))
		return gpc_sim_vmm_mapping_at(vmm, ptr, ret_base, ret_size, &handle);
	if (gpc_sim_mempool_has(face_sim(), ptr))
		return gpc_sim_mempool_find(face_sim(), ptr, ret_base, ret_size, NULL);
	if (gpc_sim_ipc_find(face_sim(), ptr, ret_base, ret_size))
		return true;
	if (device)
		return gpc_sim_device_find(device, ptr, ret_base, ret_size, NULL);
	if (!face_host_find(ptr, &block))
		return false;
	*ret_base = block.base;
	*ret_size = block.size;
	return true;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct gpc_sim_context *context;
	uint64_t at, has;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemGetAddressRange_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!range_of(ptr, &at, &has))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = at;
	if (size)
		*size = has;
	return CUDA_SUCCESS;
}

static size_t size_of(CUpointer_attribute attribute)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return 2 * sizeof(uint64_t);
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return sizeof(uint64_t);
	default:
		return sizeof(int);
	}
}

/* The most common attributes, of one number or two; false for the others. */
static bool attribute_of(CUpointer_attribute attribute, uint64_t ptr, uint64_t *ret_value)
{
	struct gpc_sim_device *device = gpc_sim_device_of(face_sim(), ptr);
	struct face_host block = { .kind = FACE_HOST_PINNED };
	struct gpc_sim_context *context = face_current();
	struct gpc_sim_mempool *pool = NULL;
	uint64_t base, size;

	if (!range_of(ptr, &base, &size))
		return false;
	if (!device && face_host_find(ptr, &block))
		context = block.context;
	(void)gpc_sim_mempool_find(face_sim(), ptr, NULL, NULL, &pool);
	bool is_managed = !device && block.kind == FACE_HOST_MANAGED;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*ret_value = (uintptr_t)context;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*ret_value = ptr;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*ret_value = (uintptr_t)pool;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*ret_value = ptr;
		return !device;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* the second of its two tokens is 0 */
		*ret_value = base;
		return device != NULL;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*ret_value = device && !pool
				     ? gpc_sim_number_of(device, ptr) * GPC_SIM_MAX_DEVICES +
					       device->ordinal
				     : base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*ret_value = base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*ret_value = size;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*ret_value = device || is_managed || gpc_sim_vmm_has(&face_sim()->vmm, ptr)
				     ? CU_MEMORYTYPE_DEVICE
				     : CU_MEMORYTYPE_HOST;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*ret_value = device ? device->ordinal : context ? context->device->ordinal : 0;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*ret_value = is_managed;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*ret_value = 1;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*ret_value = device != NULL;
		return true;
	default:
		return false;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	uint64_t value[2] = { 0, 0 };
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuPointerGetAttribute", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!data || !attribute_of(attribute, ptr, value))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, value, size_of(attribute));
	return CUDA_SUCCESS;
}

/* Like the real driver, succeeds with zeros for an unknown pointer. */
CUresult cuPointerGetAttributes(
	unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuPointerGetAttributes", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	for (unsigned i = 0; i < n; i++) {
		uint64_t value[2] = { 0, 0 };

		if (!attribute_of(attributes[i], ptr, value))
			value[0] = 0;
		memcpy(data[i], value, size_of(attributes[i]));
	}
	return CUDA_SUCCESS;
}
