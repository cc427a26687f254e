# SPDX-License-Identifier: Apache-2.0
"""vLLM: opens the runtime library already mapped, by its path; and an allocator linked with libcuda (cumem.c)."""
import ctypes
import os

from stack import MIB, ok, wants

stacks = os.environ["STACKS"]
c10 = ctypes.CDLL(os.path.join(stacks, "libc10_cuda.so"))
c10.c10_start()
with open("/proc/self/maps", encoding="utf-8") as maps:
    path = next(line.split()[-1] for line in maps if "libcudart" in line)
runtime = ctypes.CDLL(path)
cumem = ctypes.CDLL(os.path.join(stacks, "libcumem.so"))
if wants("plain"):
    ptr = ctypes.c_void_p()
    ok(runtime.cudaMalloc(ctypes.byref(ptr), ctypes.c_size_t(13 * MIB)))
    cumem.cumem_plain()
    c10.c10_plain()
if wants("mapped"):
    cumem.cumem_mapped()
cumem.cumem_hold()
