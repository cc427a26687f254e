# SPDX-License-Identifier: Apache-2.0
"""Copies from a context's memory on a stream of another one, with no peer access, and frees the memory meanwhile.

Prints the byte that arrived: the memory's when the copy was submitted, or that of its next owner.
"""
import ctypes

SIZE = 64 << 20
PART = 1 << 20  # written by the next owner: faster than the copy
DRIVER = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(DRIVER, name)(*arguments)
    if status:
        raise SystemExit(f"{name}: {status}")


def context_of(device):
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


def filled_block(value, size):
    block = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(SIZE))
    call("cuMemsetD8_v2", block, ctypes.c_ubyte(value), ctypes.c_size_t(size))
    return block


call("cuInit", 0)
owner, other = context_of(0), context_of(1)
call("cuCtxSetCurrent", owner)
source = filled_block(1, SIZE)
call("cuCtxSynchronize")

call("cuCtxSetCurrent", other)
stream, host = ctypes.c_void_p(), ctypes.c_void_p()
call("cuStreamCreate", ctypes.byref(stream), 1)
call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(SIZE), 0)
call("cuMemcpyDtoHAsync_v2", host, source, ctypes.c_size_t(SIZE), stream)

call("cuCtxSetCurrent", owner)
call("cuMemFree_v2", source)
filled_block(2, PART)
call("cuCtxSynchronize")
call("cuCtxSetCurrent", other)
call("cuStreamSynchronize", stream)
print("arrived:", ctypes.cast(host, ctypes.POINTER(ctypes.c_ubyte))[0])
