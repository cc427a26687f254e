/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch: recognises it as the caller, and throws its exception if an allocation failed.
 *
 * PyTorch's CUDAPluggableAllocator makes a tensor of any pointer that we return, even of NULL, so only an exception
 * tells it of a failure.  We throw what PyTorch's own allocator throws: c10::OutOfMemoryError, in Python
 * torch.OutOfMemoryError, or for another error of the driver c10::Error, in Python RuntimeError.
 *
 *      libtorch ---> gpucache_torch_malloc ---> no memory ---> c10::Error(source, text) ---> thrown through both
 *
 * libc10 exports the constructor of c10::Error and the class information of both classes since PyTorch 2.0; libstdc++
 * exports __cxa_throw.  The exception is built with these.  That relies on the layouts of the C++ ABI and of
 * libstdc++'s string.
 *
 * Threads   Any.  The caller of gpc_torch_raise holds no lock of ours and has left the runtime: a throw does not
 *           return.
 * Failure   gpc_torch_raise returns if the caller is not PyTorch, or if a function is missing.  The program then gets
 *           NULL.
 */
#ifndef GPC_PRELOAD_TORCH_H
#define GPC_PRELOAD_TORCH_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_abi.h"

/* True if this return address is in PyTorch's own code. */
bool gpc_torch_is_caller(const void *caller);

/* Throws `error` of a request of `size` bytes on `device`, if the return address `caller` is in PyTorch's code. */
void gpc_torch_raise(const void *caller, CUresult error, size_t size, int device);

#endif
