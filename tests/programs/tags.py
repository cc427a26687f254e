# SPDX-License-Identifier: Apache-2.0
"""Ranges named from Python: `tags.py api` by gpucache's C functions, `tags.py nvtx` by the nvtx package,
`tags.py FILE` by a library of NVTX, as older PyTorch does.  With a second argument, a request of that many bytes fails in the range "batch".

Exit status 3: there is no nvtx package here.
"""
import ctypes
import sys

MIB = 1 << 20


def load_runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    sys.exit("no CUDA runtime library found")


def find_functions(how):
    """push and pop."""
    if how == "nvtx":
        try:
            import nvtx
        except ImportError:
            sys.exit(3)
        return nvtx.push_range, nvtx.pop_range
    lib = ctypes.CDLL(None if how == "api" else how)
    push = lib.gpucache_tag_push if how == "api" else lib.nvtxRangePushA
    pop = lib.gpucache_tag_pop if how == "api" else lib.nvtxRangePop
    return lambda name: push(name.encode()), pop


def main():
    push, pop = find_functions(sys.argv[1])
    runtime = load_runtime()

    def keep(n_bytes):
        return runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(n_bytes))

    push("epoch")
    keep(8 * MIB)
    push("batch")
    keep(16 * MIB)
    if len(sys.argv) > 2:
        keep(int(sys.argv[2]))
    pop()
    pop()
    keep(4 * MIB)


main()
