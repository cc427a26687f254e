/* SPDX-License-Identifier: Apache-2.0 */
/* Memory exported by handle, memory imported from other processes, and queries of address ranges. */
#include "preload/real.h"
#include "runtime/context/reach.h"
#include "runtime/export/ipc.h"
#include "runtime/process/enter.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	return answered(ENTERED(gpc_runtime_ipc_export(handle, ptr, real_cuIpcGetMemHandle),
		real_cuIpcGetMemHandle(handle, ptr)));
}

#define OPENED(name)                                                                          \
	CUresult name(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)            \
	{                                                                                     \
		return answered(ENTERED(gpc_runtime_ipc_open(ptr, handle, flags, real_##name, \
						real_cuIpcCloseMemHandle),                    \
			real_##name(ptr, handle, flags)));                                    \
	}

OPENED(cuIpcOpenMemHandle)
OPENED(cuIpcOpenMemHandle_v2)

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	queries(NULL);
	return answered(ENTERED(gpc_runtime_ipc_close(ptr, real_cuIpcCloseMemHandle),
		real_cuIpcCloseMemHandle(ptr)));
}

/* True if the program gets this range instead of the driver's answer, which is the whole segment. */
static bool find_range(CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size)
{
	bool is_told;

	if (!enter())
		return false;
	is_told = gpc_runtime_ipc_range(ptr, is_base_told, ret_base, ret_size);
	gpc_runtime_leave();
	return is_told;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	CUresult result = real_cuMemGetAddressRange_v2(pbase, psize, dptr);
	CUdeviceptr base;
	size_t size;

	if (result == CUDA_SUCCESS && find_range(dptr, pbase != NULL, &base, &size)) {
		if (pbase)
			*pbase = base;
		if (psize)
			*psize = size;
	}
	return result;
}

static void adjust_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	const bool is_base = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
	CUdeviceptr base;
	size_t size;

	/* The driver gives all blocks of a segment the same BUFFER_ID, that of the segment. */
	if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID)
		INSIDE(gpc_runtime_identified(ptr));

	if (!is_base && attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		return;
	if (!data || !find_range(ptr, is_base, &base, &size))
		return;
	if (is_base)
		*(CUdeviceptr *)data = base;
	else
		*(size_t *)data = size;
}

/* By P2P tokens another device's driver gets access to the memory, so no work of an earlier owner may still run. */
static void leave_order(CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		INSIDE(gpc_runtime_leaves_order(ptr));
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult result;

	leave_order(attribute, ptr);
	result = real_cuPointerGetAttribute(data, attribute, ptr);

	if (result == CUDA_SUCCESS)
		adjust_attribute(data, attribute, ptr);
	return result;
}

CUresult cuPointerGetAttributes(
	unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	CUresult result;

	for (unsigned int i = 0; attributes && i < numAttributes; i++)
		leave_order(attributes[i], ptr);
	result = real_cuPointerGetAttributes(numAttributes, attributes, data, ptr);
	for (unsigned int i = 0; attributes && result == CUDA_SUCCESS && i < numAttributes; i++)
		adjust_attribute(data[i], attributes[i], ptr);
	return result;
}
