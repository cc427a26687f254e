/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: device memory exported to other processes by handle. */
#include "sim/gpu/memory/ipc.h"
#include "sim/libcuda/face.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuIpcGetMemHandle", &context);

	if (res != CUDA_SUCCESS)
		return res;
	return handle ? gpc_sim_ipc_export(face_sim(), ptr, handle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuIpcOpenMemHandle_v2", &context);
	uint64_t address;

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_ipc_open(context, &handle, flags, &address);
	if (res == CUDA_SUCCESS)
		*ptr = address;
	return res;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuIpcCloseMemHandle", &context);

	if (res != CUDA_SUCCESS)
		return res;
	(void)gpc_sim_context_sync(context);
	return gpc_sim_ipc_close(face_sim(), ptr);
}
