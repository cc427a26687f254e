/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: green contexts, and the parts of a device of which they are made.
 *
 * A green context and the CUcontext that it converts to are the same handle.  Parts of a device have the right sizes,
 * but no effect on the duration of work.
 */
#include "sim/libcuda/face.h"

#define LEAST   8 /* multiprocessors of a part, at least */
#define MAX_SMS 4096

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *resource, CUdevResourceType type)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuDeviceGetDevResource", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!face_has_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*resource = (CUdevResource){ .type = type,
		.sm = { .smCount = (unsigned)face_sim()->config.model->sms,
			.minSmPartitionSize = LEAST,
			.smCoscheduledAlignment = LEAST } };
	return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *n_groups,
	const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
	unsigned int least)
{
	unsigned size = (least > LEAST ? least + LEAST - 1 : LEAST) / LEAST * LEAST;
	unsigned n;

	if (!n_groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM || least > MAX_SMS)
		return CUDA_ERROR_INVALID_VALUE;
	n = input->sm.smCount / size;
	if (result && *n_groups < n)
		n = *n_groups;
	for (unsigned i = 0; result && i < n; i++) {
		result[i] = *input;
		result[i].sm.smCount = size;
	}
	if (remaining) {
		*remaining = *input;
		remaining->sm.smCount -= n * size;
	}
	*n_groups = n;
	return CUDA_SUCCESS;
}

/* Every description is the same, because parts of a device have no effect. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *parts, unsigned int n)
{
	static char description;

	if (!desc || !parts || n == 0)
		return CUDA_ERROR_INVALID_VALUE;
	*desc = (CUdevResourceDesc)(void *)&description;
	return CUDA_SUCCESS;
}

static struct gpc_sim_context *green_of(CUgreenCtx handle)
{
	struct gpc_sim_context *context = (struct gpc_sim_context *)(void *)handle;

	return context && context->primary ? context : NULL;
}

CUresult cuGreenCtxCreate(
	CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	struct gpc_sim_context *primary;
	struct gpc_sim_context *green;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuGreenCtxCreate", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_green || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!face_has_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	res = face_primary_retain((unsigned)dev, &primary);
	if (res != CUDA_SUCCESS)
		return res;
	res = gpc_sim_context_create_green(primary, &green);
	if (res != CUDA_SUCCESS)
		(void)face_primary_release((unsigned)dev);
	else
		*ret_green = face_green_handle(green);
	return res;
}

/* Keeps the struct: calls on the context and its streams then return 709, as with the real driver. */
CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
	struct gpc_sim_context *green = green_of(handle);
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuGreenCtxDestroy", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&green->broken) == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	(void)gpc_sim_context_sync(green);
	gpc_sim_context_break(green, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	face_leave(green);
	return face_primary_release(green->device->ordinal);
}

CUresult cuCtxFromGreenCtx(CUcontext *ret_context, CUgreenCtx handle)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxFromGreenCtx", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_context || !green_of(handle))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_context = face_context_handle(green_of(handle));
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGreenCtxRecordEvent", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!green_of(handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	return face_event(event) ? gpc_sim_context_record(green_of(handle), face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
	CUresult res = face_enter(GPC_SIM_COST_WAIT, "cuGreenCtxWaitEvent", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!green_of(handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	return face_event(event) ? gpc_sim_context_wait(green_of(handle), face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGreenCtxStreamCreate(
	CUstream *ret_stream, CUgreenCtx handle, unsigned int flags, int priority)
{
	struct gpc_sim_stream *made;
	CUresult res = face_enter(GPC_SIM_COST_EVENT_CREATE, "cuGreenCtxStreamCreate", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_stream || !green_of(handle) || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_stream_create(green_of(handle), flags, priority, &made);
	if (res == CUDA_SUCCESS)
		*ret_stream = (CUstream)(void *)made;
	return res;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *ret_green)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(
		GPC_SIM_COST_QUERY, "cuStreamGetGreenCtx", handle, FACE_LEGACY, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_green = face_green_handle(stream->context);
	return CUDA_SUCCESS;
}
