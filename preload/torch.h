/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch: recognises it as the caller, and tells it by an exception that an allocation failed.
 *
 * CUDAPluggableAllocator has no other way: it makes a tensor of any pointer that it is given, even NULL.  So we throw
 * the exception of PyTorch's own allocator: c10::OutOfMemoryError, in Python torch.OutOfMemoryError, or for another
 * driver error c10::Error, a RuntimeError.
 *
 *      libtorch ---> gpucache_torch_malloc ---> no memory ---> c10::Error(source, text) ---> thrown through both
 *
 * It is built from what libc10 exports since PyTorch 2.0, the constructor of c10::Error and the class information of
 * both classes, and from the C++ runtime's __cxa_throw.  It relies on the layout of the C++ ABI and of libstdc++'s
 * string.
 *
 * Threads   Any; gpc_torch_raise: with no lock of ours held, and outside the runtime, because it may not return.
 * Failure   Returns if the caller is not PyTorch, or if a function is missing.  The program then gets NULL.
 */
#ifndef GPC_PRELOAD_TORCH_H
#define GPC_PRELOAD_TORCH_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_abi.h"

/* True if this return address is in PyTorch's own code. */
bool gpc_torch_is_caller(const void *caller);

/* `caller` is a return address into the code that requested `size` bytes of `device` in vain. */
void gpc_torch_raise(const void *caller, CUresult error, size_t size, int device);

#endif
