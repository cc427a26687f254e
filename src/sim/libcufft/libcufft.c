/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcufft: plans, by number, and their work areas.
 *
 * A work area is as large as the whole transform in complex numbers.  The real library takes between nothing (one
 * dimension, a power of two) and several times that size (large primes); NVIDIA documents the size for no plan.
 */
#include <cufftXt.h>
#include <pthread.h>
#include <stdbool.h>

#include "sim/standin/standin.h"

#define VERSION   12000
#define MAX_PLANS 65536

const struct standin_library standin_library = {
	.name = "libcufft",
	.not_supported = CUFFT_NOT_SUPPORTED,
	.not_initialized = CUFFT_INVALID_PLAN,
	.failed = CUFFT_EXEC_FAILED,
};

struct plan {
	struct standin_handle base;
	size_t size;
	bool has_own_area;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan *plans[MAX_PLANS];

static struct plan *of(cufftHandle handle)
{
	return handle > 0 && handle < MAX_PLANS ? plans[handle] : NULL;
}

static size_t complex_bytes(cudaDataType type)
{
	switch ((int)type) {
	case CUDA_R_16F:
	case CUDA_C_16F:
		return 4;
	case CUDA_R_64F:
	case CUDA_C_64F:
		return 16;
	default:
		return 8;
	}
}

#pragma GCC visibility push(default)

cufftResult cufftCreate(cufftHandle *handle)
{
	struct plan *plan = standin_create(sizeof *plan);
	cufftResult res = CUFFT_ALLOC_FAILED;

	pthread_mutex_lock(&lock);
	for (int i = 1; plan && i < MAX_PLANS; i++) {
		if (plans[i])
			continue;
		plans[i] = plan;
		plan->has_own_area = true;
		*handle = i;
		res = CUFFT_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&lock);
	if (res != CUFFT_SUCCESS)
		(void)standin_destroy(plan);
	return res;
}

cufftResult cufftDestroy(cufftHandle handle)
{
	struct plan *plan;

	pthread_mutex_lock(&lock);
	plan = of(handle);
	if (plan)
		plans[handle] = NULL;
	pthread_mutex_unlock(&lock);
	return standin_destroy(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftGetVersion(int *version)
{
	*version = VERSION;
	return CUFFT_SUCCESS;
}

cufftResult cufftGetSize(cufftHandle handle, size_t *size)
{
	const struct plan *plan = of(handle);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	*size = plan->size;
	return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates)
{
	struct plan *plan = of(handle);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->has_own_area = allocates;
	return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *area)
{
	return of(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
	struct plan *plan = of(handle);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->base.stream = stream;
	return CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long int *n,
	long long int *inembed, long long int istride, long long int idist, cudaDataType input,
	long long int *onembed, long long int ostride, long long int odist, cudaDataType output,
	long long int batch, size_t *size, cudaDataType execution)
{
	struct plan *plan = of(handle);
	size_t bytes = complex_bytes(execution) * (size_t)batch;

	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (rank < 1 || rank > 3 || !n || batch < 1)
		return CUFFT_INVALID_VALUE;
	for (int i = 0; i < rank; i++)
		bytes *= (size_t)n[i];
	if (plan->has_own_area && !standin_take(&plan->base, bytes))
		return CUFFT_ALLOC_FAILED;
	plan->size = bytes;
	if (size)
		*size = bytes;
	return CUFFT_SUCCESS;
}

cufftResult cufftXtExec(cufftHandle handle, void *input, void *output, int direction)
{
	const struct plan *plan = of(handle);

	if (!plan || !plan->size)
		return CUFFT_INVALID_PLAN;
	return input && output ? (cufftResult)standin_work(&plan->base) : CUFFT_INVALID_VALUE;
}

#pragma GCC visibility pop
