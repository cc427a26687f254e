/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.def against the real cuda.h: a row whose prototype drifted does not compile.
 *
 * Compiled alone, with the CUDA toolkit's headers and without ours.  The first part sees the names of today, the
 * older variants are compared where cuda.h still declares them (__CUDA_API_VERSION_INTERNAL shows them all).
 */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == 16, "as in driver/cuda_abi.h");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == 24, "as in driver/cuda_abi.h");

#define ROW(name, params)                                                                   \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) params), \
		#name " in preload/symbols.def is not what cuda.h declares");
#define HOOK(name, since, gets, params, args)          ROW(name, params)
#define HOOK_STREAM(name, since, params, args, stream) ROW(name, params)
/* The per-thread variants have no prototype of their own under these names: theirs is that of the plain one. */
#define HOOK_PER_THREAD(name, since, params, args, stream)
#include "preload/symbols.def"
