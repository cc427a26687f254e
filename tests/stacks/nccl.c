/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_calls.h"

static void *entry_point(const char *name)
{
	enum cudaDriverEntryPointQueryResult found;
	void *function = NULL;

	if (cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found) != cudaSuccess)
		return NULL;
	return function;
}

int main(int argc, char **argv)
{
	struct stack_driver cu;
	CUdeviceptr base = 0;
	size_t size = 0;
	void *ptr = NULL;

	OK(cudaFree(NULL));
#define X(symbol, name, version, parameters) *(void **)(void *)&cu.symbol = entry_point(name);
	STACK_TABLE(X)
#undef X
	if (stack_has(argc, argv, "plain")) {
		OK(cudaMalloc(&ptr, 4 * MIB));
		OK(cu.cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)(uintptr_t)ptr + 100));
		OK(base > (CUdeviceptr)(uintptr_t)ptr || size < 4 * MIB);
		OK(cudaHostAlloc(&ptr, 9 * MIB, cudaHostAllocMapped));
	}
	if (stack_has(argc, argv, "mapped"))
		stack_mapped(&cu);
	stack_hold();
}
