# SPDX-License-Identifier: Apache-2.0
"""numba: libcuda by ctypes; of each function the first variant found among its suffixes."""
import ctypes
import os

from stack import MIB, hold, ok, wants

driver = ctypes.CDLL("libcuda.so.1")
SUFFIXES = ["_v2", ""]
if os.environ.get("NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM") == "1":
    SUFFIXES = ["_v2_ptds", "_v2_ptsz", "_ptds", "_ptsz", *SUFFIXES]


def find(name):
    for suffix in SUFFIXES:
        try:
            return getattr(driver, name + suffix)
        except AttributeError:
            continue
    raise AttributeError(name)


context = ctypes.c_void_p()
ptr = ctypes.c_uint64()
ok(find("cuInit")(0))
ok(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(find("cuCtxPushCurrent")(context))
if wants("plain"):
    for size in (8, 4 * MIB, 30 * MIB + 77):
        ok(find("cuMemAlloc")(ctypes.byref(ptr), ctypes.c_size_t(size)))
        ok(find("cuMemsetD8")(ptr, 0, ctypes.c_size_t(size)))
    ok(find("cuMemFree")(ptr))
if wants("async"):
    ok(find("cuMemAllocAsync")(ctypes.byref(ptr), ctypes.c_size_t(3 * MIB), None))
hold()
