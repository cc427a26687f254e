# SPDX-License-Identifier: Apache-2.0
"""Fills most of 1 GiB with blocks of one size, frees them, and within a capture of the given mode asks for a larger one.

capture_room MODE: 0 global, 1 thread-local, 2 relaxed; prints the status of the request and of the capture's end.
"""
import ctypes
import sys

from train import Device

MIB = 1 << 20
NON_BLOCKING = 1


def main():
    device = Device()
    stream, graph, large = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    device.check("cudaStreamCreateWithFlags", device.lib.cudaStreamCreateWithFlags(ctypes.byref(stream), NON_BLOCKING))
    blocks = [device.alloc(64 * MIB) for _ in range(12)]
    for block in blocks:
        device.check("cudaMemsetAsync", device.lib.cudaMemsetAsync(block, 0, ctypes.c_size_t(MIB), stream))
    for block in blocks:
        device.free(block, 64 * MIB)
    device.check("cudaStreamBeginCapture", device.lib.cudaStreamBeginCapture(stream, int(sys.argv[1])))
    asked = device.lib.cudaMalloc(ctypes.byref(large), ctypes.c_size_t(640 * MIB))
    print("asked", asked, "ended", device.lib.cudaStreamEndCapture(stream, ctypes.byref(graph)))


if __name__ == "__main__":
    main()
