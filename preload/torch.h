/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch: who it is, and how it is told that an allocation failed - by an exception.
 *
 * CUDAPluggableAllocator has no other way to hear of it: it makes a tensor of whatever pointer it is given, NULL too.
 * So what the program would get from PyTorch's own allocator is thrown from here: c10::OutOfMemoryError, which Python
 * knows as torch.OutOfMemoryError, or for another error of the driver c10::Error, a RuntimeError.
 *
 *      libtorch ---> gpucache_torch_malloc ---> no memory ---> c10::Error(source, text) ---> thrown through both
 *
 * It is put together of what libc10 exports since PyTorch 2.0: the constructor of c10::Error, the class information of
 * either class, and of the C++ runtime's __cxa_throw.  The layout that is relied on is that of the C++ ABI and of
 * libstdc++'s string.
 *
 * Threads   Any.  No lock of ours is held, and the runtime is left.
 * Failure   Returns: it was not PyTorch that called, or one of those is not there.  The caller gets NULL then.
 */
#ifndef GPC_PRELOAD_TORCH_H
#define GPC_PRELOAD_TORCH_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_abi.h"

/* Whether this return address leads into PyTorch's own code. */
bool gpc_torch_is_caller(const void *caller);

/* `caller`: a return address into who asked for `size` bytes of `device`, and cannot have them. */
void gpc_torch_raise(const void *caller, CUresult error, size_t size, int device);

#endif
