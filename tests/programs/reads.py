# SPDX-License-Identifier: Apache-2.0
"""A loop that waits for a result of a kernel, 2,000 times; prints how long it waited."""
import ctypes

cuda = ctypes.CDLL("libcudart.so.13")
memory, done, kernel = ctypes.c_void_p(), ctypes.c_byte(), ctypes.c_byte()


class Dim(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def is_done():
    cuda.cudaLaunchKernel(ctypes.byref(kernel), Dim(1, 1, 1), Dim(1, 1, 1), None, ctypes.c_size_t(0), None)
    cuda.cudaMemcpy(ctypes.byref(done), memory, ctypes.c_size_t(1), 2)
    return done.value


cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(512))
steps = 0
while not is_done() and steps < 2000:
    steps += 1
print(steps)
