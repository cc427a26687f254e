# SPDX-License-Identifier: Apache-2.0
"""The Python module `gpucache`, on ctypes alone; prints "done".  Without the library: module.py absent."""
import ctypes
import sys

import gpucache

MIB = 1 << 20


def refused(call, code):
    try:
        call()
    except gpucache.GpucacheError as error:
        assert error.code == code, error
        return
    raise AssertionError(f"{call} was not refused")


def absent():
    assert not gpucache.is_active()
    refused(gpucache.memory_stats, None)
    with gpucache.tag("nothing"):
        pass


def main():
    cudart = ctypes.CDLL("libcudart.so.13")

    def malloc(size):
        pointer = ctypes.c_void_p()
        return pointer if cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0 else None

    assert gpucache.is_active()
    refused(gpucache.memory_allocated, 3)  # CUDA is not initialised yet
    kept = malloc(8 * MIB)
    assert gpucache.memory_allocated() == 8 * MIB and gpucache.memory_reserved(0) >= 8 * MIB
    spike = malloc(32 * MIB)
    cudart.cudaFree(spike)
    assert gpucache.max_memory_allocated() == 40 * MIB
    gpucache.reset_peak_memory_stats()
    assert gpucache.max_memory_allocated() == 8 * MIB and gpucache.max_memory_reserved() == gpucache.memory_reserved()
    cudart.cudaDeviceSynchronize()
    assert gpucache.empty_cache() > 0
    with gpucache.tag("forward"):
        inside = malloc(24 * MIB)
    assert gpucache.tag_stats("forward") == {"live_bytes": 24 * MIB, "n_blocks": 1}
    assert gpucache.stream_stats(0) == {"live_bytes": 0, "n_blocks": 0}
    assert "8.00 MiB" not in gpucache.memory_summary().splitlines()[2] and "32.00 MiB" in gpucache.memory_summary()
    refused(lambda: gpucache.memory_stats(99), 101)

    asked = []

    def drop(wanted, device):
        asked.append((wanted, device))
        return cudart.cudaFree(inside) == 0 if len(asked) == 1 else [][0]

    gpucache.set_limit(64 * MIB)
    gpucache.on_out_of_memory(drop)
    assert malloc(40 * MIB) and asked == [(40 * MIB, 0)], asked
    sys.excepthook = lambda *what: print(what[0].__name__)  # an exception of the handler is told, and counts as "nothing freed"
    assert not malloc(54 * MIB) and len(asked) == 2
    gpucache.on_out_of_memory(None)
    assert not malloc(54 * MIB) and len(asked) == 2
    gpucache.set_limit(0)
    assert gpucache.snapshot().endswith(".gpucache")
    assert "module.py" in gpucache.report("--color=never", "summary")
    assert kept
    print("done")


if __name__ == "__main__":
    absent() if sys.argv[1:] else main()
