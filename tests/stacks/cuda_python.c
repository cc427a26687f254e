/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

int main(int argc, char **argv)
{
	/* As cuda-python, by the environment: for all functions or none. */
	const char *wish = getenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM");
	const cuuint64_t flags = wish && *wish == '1'
					 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					 : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
	CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *library = stack_open("libcuda.so.1", RTLD_NOW);
	CUdriverProcAddressQueryResult found;
	struct stack_driver cu = { 0 };

	*(void **)(void *)&get = dlsym(library, "cuGetProcAddress_v2");
	/* What this driver lacks stays NULL. */
#define X(symbol, name, version, parameters) \
	(void)get(name, (void **)(void *)&cu.symbol, version, flags, &found);
	STACK_TABLE(X)
#undef X
	stack_start(&cu);
	stack_take(&cu, argc, argv);
	stack_hold();
}
