/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

/* For a registration cache: tells whether an address still has the registered memory. */
static unsigned long long id_of(const struct stack_driver *cu, CUdeviceptr ptr)
{
	unsigned long long id = 0;

	OK(cu->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
	return id;
}

int main(int argc, char **argv)
{
	void *library = stack_open("libcuda.so.1", RTLD_NOW);
	struct stack_driver cu;
	CUdeviceptr ptr = 0;
	CUdeviceptr base = 0;
	size_t size = 0;

#define X(symbol, name, version, parameters) *(void **)(void *)&cu.symbol = dlsym(library, #symbol);
	STACK_TABLE(X)
#undef X
	stack_start(&cu);
	if (stack_has(argc, argv, "plain")) {
		OK(cu.cuMemAlloc_v2(&ptr, 6 * MIB));
		OK(cu.cuMemGetAddressRange_v2(&base, &size, ptr + 4096));
		OK(base > ptr || base + size < ptr + 6 * MIB);
		OK(id_of(&cu, base) != id_of(&cu, ptr));
	}
	stack_take(&cu, argc, argv);
	stack_hold();
}
