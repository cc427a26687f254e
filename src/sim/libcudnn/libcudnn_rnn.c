/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in for libcudnn: recurrent networks, as far as their memory is concerned.
 *
 * The weight space holds the matrices of all layers, then the biases of all layers.  The sizes of workspace and reserve
 * space are not published.  Here the workspace holds the gates of one step, and the reserve space of training holds the
 * gates and both states of every step.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/libcudnn/libcudnn.h"

struct rnn {
	cudnnRNNMode_t cell;
	cudnnDataType_t type;
	size_t element;
	size_t input, hidden, projected;
	size_t n_layers, n_directions;
	int has_bias;
};

struct data {
	size_t length, batch;
};

/* The number of matrix products per step: half of them with the input, half with the state. */
static size_t products_of(const struct rnn *rnn)
{
	return rnn->cell == CUDNN_LSTM ? 8 : rnn->cell == CUDNN_GRU ? 6 : 2;
}

static size_t columns_of(const struct rnn *rnn, size_t layer, size_t product)
{
	if (product >= products_of(rnn) / 2)
		return rnn->projected;
	return layer < rnn->n_directions ? rnn->input : rnn->projected * rnn->n_directions;
}

/* The number of elements in all matrices before this one.  If `layer` is the number of layers: in all matrices. */
static size_t elements_before(const struct rnn *rnn, size_t layer, size_t product)
{
	size_t n = 0;

	for (size_t i = 0; i < layer; i++)
		for (size_t k = 0; k < products_of(rnn); k++)
			n += rnn->hidden * columns_of(rnn, i, k);
	for (size_t k = 0; k < product; k++)
		n += rnn->hidden * columns_of(rnn, layer, k);
	return n;
}

static cudnnStatus_t describe(
	cudnnTensorDescriptor_t desc, cudnnDataType_t type, size_t rows, size_t columns)
{
	int dims[] = { 1, (int)rows, (int)columns };
	int strides[] = { (int)(rows * columns), (int)columns, 1 };

	return cudnnSetTensorNdDescriptor(desc, type, 3, dims, strides);
}

static struct rnn *of(cudnnRNNDescriptor_t desc)
{
	return (struct rnn *)(void *)desc;
}

#pragma GCC visibility push(default)

LIFE(RNN, cudnnRNNDescriptor_t, sizeof(struct rnn))
LIFE(RNNData, cudnnRNNDataDescriptor_t, sizeof(struct data))

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo,
	cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
	cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t precision,
	cudnnMathType_t math, int32_t input_size, int32_t hidden_size, int32_t projected_size,
	int32_t n_layers, cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
	if (!desc || input_size < 1 || hidden_size < 1 || n_layers < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (input != CUDNN_LINEAR_INPUT)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*of(desc) = (struct rnn){
		.cell = cell,
		.type = type,
		.element = type == CUDNN_DATA_DOUBLE  ? 8
			   : type == CUDNN_DATA_FLOAT ? 4
						      : 2,
		.input = (size_t)input_size,
		.hidden = (size_t)hidden_size,
		.projected = (size_t)(projected_size > 0 ? projected_size : hidden_size),
		.n_layers = (size_t)n_layers,
		.n_directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
		.has_bias = bias != CUDNN_RNN_NO_BIAS,
	};
	/* A projection adds a matrix per layer, which is not laid out here. */
	return projected_size > 0 && projected_size != hidden_size ? CUDNN_STATUS_NOT_SUPPORTED
								   : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(
	cudnnHandle_t handle, cudnnRNNDescriptor_t desc, size_t *size)
{
	const struct rnn *rnn = of(desc);

	if (!rnn || !size)
		return CUDNN_STATUS_BAD_PARAM;
	size_t n_layers = rnn->n_layers * rnn->n_directions;
	size_t n = elements_before(rnn, n_layers, 0);
	if (rnn->has_bias)
		n += n_layers * products_of(rnn) * rnn->hidden;
	*size = n * rnn->element;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
	int32_t layer, size_t size, const void *space, int32_t which,
	cudnnTensorDescriptor_t matrix, void **matrix_at, cudnnTensorDescriptor_t bias,
	void **bias_at)
{
	const struct rnn *rnn = of(desc);

	if (!rnn || layer < 0 || which < 0 || (size_t)which >= products_of(rnn))
		return CUDNN_STATUS_BAD_PARAM;
	size_t n_layers = rnn->n_layers * rnn->n_directions;
	size_t matrices = elements_before(rnn, n_layers, 0);
	size_t at = elements_before(rnn, (size_t)layer, (size_t)which);
	size_t bias_number = (size_t)layer * products_of(rnn) + (size_t)which;
	char *base = (char *)(uintptr_t)space;

	/* A caller that wants only one of the two passes NULL for the other. */
	if (bias_at)
		*bias_at = rnn->has_bias
				   ? base + (matrices + bias_number * rnn->hidden) * rnn->element
				   : NULL;
	if (bias)
		(void)describe(bias, rnn->type, rnn->hidden, 1);
	if (matrix_at)
		*matrix_at = base + at * rnn->element;
	if (!matrix)
		return CUDNN_STATUS_SUCCESS;
	return describe(
		matrix, rnn->type, rnn->hidden, columns_of(rnn, (size_t)layer, (size_t)which));
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
	cudnnRNNDataLayout_t layout, int length, int batch, int vector, const int lengths[],
	void *fill)
{
	if (!desc || length < 1 || batch < 1)
		return CUDNN_STATUS_BAD_PARAM;
	*(struct data *)(void *)desc =
		(struct data){ .length = (size_t)length, .batch = (size_t)batch };
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
	cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x, size_t *workspace, size_t *reserve)
{
	const struct rnn *rnn = of(desc);
	const struct data *data = (const struct data *)(const void *)x;

	if (!rnn || !data)
		return CUDNN_STATUS_BAD_PARAM;
	size_t gates = products_of(rnn) / 2;
	size_t step = data->batch * rnn->hidden * rnn->n_layers * rnn->n_directions * rnn->element;
	if (workspace)
		*workspace = gates * step;
	if (reserve)
		*reserve = mode == CUDNN_FWD_MODE_TRAINING ? data->length * (gates + 2) * step : 0;
	return CUDNN_STATUS_SUCCESS;
}

#pragma GCC visibility pop
