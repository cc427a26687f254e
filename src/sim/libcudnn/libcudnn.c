/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcudnn: handles, tensors, batch normalization, and graphs computed by a single engine.
 *
 * Neither an execution plan nor batch normalization requests a workspace.  The real library's heuristics choose by
 * shape, GPU and version, and are not published.  Every convolution has an algorithm without workspace, so a real
 * program uses between 0 and the limit that it sets.
 */
#include <cudnn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/libcudnn/libcudnn.h"
#include "sim/standin/standin.h"

#define CUDART     13000
#define MAX_DIMS   8
#define RNG_STATES 1048576 /* bytes of generator states for dropout */

const struct standin_library standin_library = {
	.name = "libcudnn",
	.not_supported = CUDNN_STATUS_NOT_SUPPORTED,
	.not_initialized = CUDNN_STATUS_NOT_INITIALIZED,
	.failed = CUDNN_STATUS_EXECUTION_FAILED,
};

/* A tensor, or a filter. */
struct tensor {
	cudnnDataType_t type;
	cudnnTensorFormat_t format;
	int n;
	int dims[MAX_DIMS];
	int strides[MAX_DIMS];
};

/* A descriptor of the graph API. */
struct node {
	cudnnBackendDescriptorType_t type;
};

cudnnStatus_t own_cudnn_create(void **ret, size_t size)
{
	*ret = calloc(1, size);
	return *ret ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t own_cudnn_destroy(void *made)
{
	free(made);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(
	struct tensor *tensor, cudnnDataType_t type, int n, const int dims[], const int strides[])
{
	if (!tensor || !dims || n < 1 || n > MAX_DIMS)
		return CUDNN_STATUS_BAD_PARAM;
	tensor->type = type;
	tensor->n = n;
	for (int i = 0; i < n; i++) {
		tensor->dims[i] = dims[i];
		tensor->strides[i] = strides ? strides[i] : 0;
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get(const struct tensor *tensor, int wanted, cudnnDataType_t *type, int *n,
	int dims[], int strides[])
{
	if (!tensor)
		return CUDNN_STATUS_BAD_PARAM;
	*type = tensor->type;
	*n = tensor->n;
	for (int i = 0; i < wanted && i < tensor->n; i++) {
		dims[i] = tensor->dims[i];
		if (strides)
			strides[i] = tensor->strides[i];
	}
	return CUDNN_STATUS_SUCCESS;
}

static struct standin_handle *of(cudnnHandle_t handle)
{
	return (struct standin_handle *)(void *)handle;
}

#pragma GCC visibility push(default)

size_t cudnnGetVersion(void)
{
	return CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL;
}

size_t cudnnGetCudartVersion(void)
{
	return CUDART;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	switch ((int)status) {
	case CUDNN_STATUS_SUCCESS:
		return "CUDNN_STATUS_SUCCESS";
	case CUDNN_STATUS_NOT_INITIALIZED:
		return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_BAD_PARAM:
		return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_STATUS_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_STATUS_EXECUTION_FAILED:
		return "CUDNN_STATUS_EXECUTION_FAILED";
	default:
		return "unrecognized status";
	}
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
	if (max_size)
		snprintf(message, max_size, "the simulated libcudnn keeps no text of errors");
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
	*value = type == MAJOR_VERSION   ? CUDNN_MAJOR
		 : type == MINOR_VERSION ? CUDNN_MINOR
					 : CUDNN_PATCHLEVEL;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	void *own;

	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	if (!standin_capability())
		return CUDNN_STATUS_NOT_INITIALIZED;
	own = standin_create(sizeof(struct standin_handle));
	*handle = own;
	return own ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	return standin_destroy(handle) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	return standin_set_stream(of(handle), stream) ? CUDNN_STATUS_BAD_PARAM
						      : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
	if (!handle)
		return CUDNN_STATUS_BAD_PARAM;
	*stream = of(handle)->stream;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

LIFE(Tensor, cudnnTensorDescriptor_t, sizeof(struct tensor))
LIFE(Filter, cudnnFilterDescriptor_t, sizeof(struct tensor))
LIFE(Activation, cudnnActivationDescriptor_t, 1)
LIFE(Dropout, cudnnDropoutDescriptor_t, 1)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n,
	const int dims[], const int strides[])
{
	return set((struct tensor *)(void *)desc, type, n, dims, strides);
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int wanted,
	cudnnDataType_t *type, int *n, int dims[], int strides[])
{
	return get((const struct tensor *)(const void *)desc, wanted, type, n, dims, strides);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
	cudnnTensorFormat_t format, int n, const int dims[])
{
	struct tensor *tensor = (struct tensor *)(void *)desc;
	cudnnStatus_t status = set(tensor, type, n, dims, NULL);

	if (status == CUDNN_STATUS_SUCCESS)
		tensor->format = format;
	return status;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t desc, int wanted,
	cudnnDataType_t *type, cudnnTensorFormat_t *format, int *n, int dims[])
{
	const struct tensor *tensor = (const struct tensor *)(const void *)desc;
	cudnnStatus_t status = get(tensor, wanted, type, n, dims, NULL);

	if (status == CUDNN_STATUS_SUCCESS)
		*format = tensor->format;
	return status;
}

/* The caller allocates the memory for the states. */
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *size)
{
	*size = RNG_STATES;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
	float dropout, void *states, size_t size, unsigned long long seed)
{
	if (states && size < RNG_STATES)
		return CUDNN_STATUS_BAD_PARAM;
	return states ? (cudnnStatus_t)standin_work(of(handle)) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
	float dropout, void *states, size_t size, unsigned long long seed)
{
	return states && size < RNG_STATES ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y,
	const cudnnTensorDescriptor_t scale, const cudnnActivationDescriptor_t activation,
	size_t *size)
{
	*size = 0;
	return handle && x && y && scale ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy,
	const cudnnTensorDescriptor_t dz, const cudnnTensorDescriptor_t dx,
	const cudnnTensorDescriptor_t dscale, const cudnnActivationDescriptor_t activation,
	size_t *size)
{
	*size = 0;
	return handle && x && dy && dx && dscale ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
	const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t *size)
{
	*size = 0;
	return handle && x ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* ---- graphs: a single engine runs them all ---- */

cudnnStatus_t cudnnBackendCreateDescriptor(
	cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *desc)
{
	cudnnStatus_t status = own_cudnn_create(desc, sizeof(struct node));

	if (status == CUDNN_STATUS_SUCCESS)
		((struct node *)*desc)->type = type;
	return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
	return own_cudnn_destroy(desc);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
	return desc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
	const void *elements)
{
	return desc && n >= 0 && (elements || n == 0) ? CUDNN_STATUS_SUCCESS
						      : CUDNN_STATUS_BAD_PARAM;
}

/* Answers a program that looks for an engine: there is one, number 0, without knobs, notes or workspace. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const desc,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
	int64_t *n, void *elements)
{
	int64_t has = 0;

	if (!desc)
		return CUDNN_STATUS_BAD_PARAM;
	switch ((int)name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
	case CUDNN_ATTR_ENGINECFG_ENGINE:
	case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
		/* `elements` has descriptors that the caller created; nothing is stored in them. */
		has = 1;
		break;
	case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
	case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
		has = 1;
		if (elements && room > 0)
			memset(elements, 0, type == CUDNN_TYPE_INT64 ? 8 : 4);
		break;
	default:
		break;
	}
	if (n)
		*n = has;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(
	cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant)
{
	if (!plan || !variant)
		return CUDNN_STATUS_BAD_PARAM;
	return (cudnnStatus_t)standin_work(of(handle));
}

#pragma GCC visibility pop
