# SPDX-License-Identifier: Apache-2.0
"""CuPy: looks up the runtime library's functions by ctypes, as bare addresses (its softlink)."""
import ctypes

from stack import MIB, hold, ok, wants

runtime = ctypes.CDLL("libcudart.so.13")


def softlink(name, *arguments):
    address = ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(address)


malloc = softlink("cudaMalloc", ctypes.c_void_p, ctypes.c_size_t)
malloc_async = softlink("cudaMallocAsync", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
free = softlink("cudaFree", ctypes.c_void_p)
ptr = ctypes.c_void_p()
ok(free(None))
if wants("plain"):
    for size in (512, 3 * MIB, 70 * MIB + 1, 1000):
        ok(malloc(ctypes.addressof(ptr), size))
    ok(free(ptr))
if wants("async"):
    ok(malloc_async(ctypes.addressof(ptr), 11 * MIB, None))
hold()
