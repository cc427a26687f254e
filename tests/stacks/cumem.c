/* SPDX-License-Identifier: Apache-2.0 */
/* Linked with libcuda: each call goes through the PLT.  Opened by vllm.py. */
#include "stack.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void cumem_plain(void);
EXPORT void cumem_mapped(void);
EXPORT void cumem_hold(void);

void cumem_plain(void)
{
	CUdeviceptr ptr;

	OK(cuMemAlloc_v2(&ptr, 2 * MIB + 1));
}

void cumem_mapped(void)
{
	static const struct stack_driver cu = {
		.cuMemAddressReserve = cuMemAddressReserve,
		.cuMemCreate = cuMemCreate,
		.cuMemRelease = cuMemRelease,
		.cuMemMap = cuMemMap,
		.cuMemSetAccess = cuMemSetAccess,
	};

	stack_mapped(&cu);
}

void cumem_hold(void)
{
	stack_hold();
}
