/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares symbols.def with the real cuda.h: a row with a wrong prototype does not compile.
 *
 * Compiled with the CUDA toolkit's headers and without ours.  __CUDA_API_VERSION_INTERNAL makes cuda.h declare the
 * older variants as well.
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == 16, "as in driver/cuda_abi.h");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == 24, "as in driver/cuda_abi.h");

#define ROW(name, params)                                                                   \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) params), \
		#name " in preload/symbols.def is not what cuda.h declares");
#define HOOK(name, since, gets, params, args)             ROW(name, params)
#define HOOK_STREAM(name, since, gets, params, args, ...) ROW_##gets(name, params)
#define ROW_SUBMIT(name, params)                          ROW(name, params)
/* cuda.h declares no per-thread variants under these names; their prototype is that of the plain function. */
#define ROW_THREAD(name, params)
#include "preload/symbols.def"
