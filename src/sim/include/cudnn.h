/* SPDX-License-Identifier: Apache-2.0 */
/* A <cudnn.h> for machines without cuDNN: the part that the stand-in implements. */
#ifndef SIMCUDA_CUDNN_H
#define SIMCUDA_CUDNN_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#define CUDNN_MAJOR      9
#define CUDNN_MINOR      26
#define CUDNN_PATCHLEVEL 0

typedef enum {
	CUDNN_STATUS_SUCCESS = 0,
	CUDNN_STATUS_NOT_INITIALIZED = 1001,
	CUDNN_STATUS_BAD_PARAM = 2000,
	CUDNN_STATUS_NOT_SUPPORTED = 3000,
	CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4001,
	CUDNN_STATUS_EXECUTION_FAILED = 5000
} cudnnStatus_t;

typedef enum {
	MAJOR_VERSION,
	MINOR_VERSION,
	PATCH_LEVEL
} libraryPropertyType;

typedef enum {
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_DOUBLE = 1,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_BFLOAT16 = 9
} cudnnDataType_t;

typedef enum {
	CUDNN_RNN_RELU,
	CUDNN_RNN_TANH,
	CUDNN_LSTM,
	CUDNN_GRU
} cudnnRNNMode_t;
typedef enum {
	CUDNN_RNN_NO_BIAS = 0
} cudnnRNNBiasMode_t;
typedef enum {
	CUDNN_UNIDIRECTIONAL,
	CUDNN_BIDIRECTIONAL
} cudnnDirectionMode_t;
typedef enum {
	CUDNN_LINEAR_INPUT,
	CUDNN_SKIP_INPUT
} cudnnRNNInputMode_t;
typedef enum {
	CUDNN_FWD_MODE_INFERENCE,
	CUDNN_FWD_MODE_TRAINING
} cudnnForwardMode_t;

/* The stand-in does not interpret arguments of these types, so each has one name. */
typedef enum {
	CUDNN_TENSOR_NCHW = 0
} cudnnTensorFormat_t;
typedef enum {
	CUDNN_DEFAULT_MATH = 0
} cudnnMathType_t;
typedef enum {
	CUDNN_RNN_ALGO_STANDARD = 0
} cudnnRNNAlgo_t;
typedef enum {
	CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0
} cudnnRNNDataLayout_t;
typedef enum {
	CUDNN_BATCHNORM_PER_ACTIVATION = 0
} cudnnBatchNormMode_t;
typedef enum {
	CUDNN_BATCHNORM_OPS_BN = 0
} cudnnBatchNormOps_t;

typedef enum {
	CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
	CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3
} cudnnBackendDescriptorType_t;

typedef enum {
	CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
	CUDNN_ATTR_ENGINECFG_ENGINE = 300,
	CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE = 303,
	CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED = 304,
	CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
	CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
	CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301
} cudnnBackendAttributeName_t;

typedef enum {
	CUDNN_TYPE_INT64 = 3,
	CUDNN_TYPE_INT32 = 23
} cudnnBackendAttributeType_t;

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;
typedef void *cudnnBackendDescriptor_t;

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
const char *cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char *message, size_t max_size);
cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream);

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n,
	const int dims[], const int strides[]);
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int wanted,
	cudnnDataType_t *type, int *n, int dims[], int strides[]);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *desc);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc);
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
	cudnnTensorFormat_t format, int n, const int dims[]);
cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t desc, int wanted,
	cudnnDataType_t *type, cudnnTensorFormat_t *format, int *n, int dims[]);
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *desc);
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc);

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *desc);
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t desc);
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *size);
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
	float dropout, void *states, size_t size, unsigned long long seed);
cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
	float dropout, void *states, size_t size, unsigned long long seed);

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y,
	const cudnnTensorDescriptor_t scale, const cudnnActivationDescriptor_t activation,
	size_t *size);
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy,
	const cudnnTensorDescriptor_t dz, const cudnnTensorDescriptor_t dx,
	const cudnnTensorDescriptor_t dscale, const cudnnActivationDescriptor_t activation,
	size_t *size);
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle,
	cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
	const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x,
	size_t *size);

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *desc);
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t desc);
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo,
	cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
	cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t precision,
	cudnnMathType_t math, int32_t input_size, int32_t hidden_size, int32_t projected_size,
	int32_t n_layers, cudnnDropoutDescriptor_t dropout, uint32_t flags);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(
	cudnnHandle_t handle, cudnnRNNDescriptor_t desc, size_t *size);
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
	int32_t layer, size_t size, const void *space, int32_t which,
	cudnnTensorDescriptor_t matrix, void **matrix_at, cudnnTensorDescriptor_t bias,
	void **bias_at);
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
	cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x, size_t *workspace, size_t *reserve);
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *desc);
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t desc);
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
	cudnnRNNDataLayout_t layout, int length, int batch, int vector, const int lengths[],
	void *fill);

cudnnStatus_t cudnnBackendCreateDescriptor(
	cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *desc);
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc);
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc);
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
	const void *elements);
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const desc,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
	int64_t *n, void *elements);
cudnnStatus_t cudnnBackendExecute(
	cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant);

#endif
