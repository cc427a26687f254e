# SPDX-License-Identifier: Apache-2.0
"""Takes pitched memory for a million rows of 12 bytes until there is none; prints how many blocks it got."""
import ctypes

from train import load_runtime

cuda = load_runtime()
block, pitch = ctypes.c_void_p(), ctypes.c_size_t()
n = 0
while cuda.cudaMallocPitch(ctypes.byref(block), ctypes.byref(pitch), ctypes.c_size_t(12), ctypes.c_size_t(1 << 20)) == 0:
    n += 1
print(n, pitch.value)
