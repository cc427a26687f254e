# SPDX-License-Identifier: Apache-2.0
"""Fills the GPU with pieces, frees every second one and fails.  Then frees everything, itself or by a reset, or stops at once."""
import os
import sys

from train import CudaError, Device, load_runtime

PIECE = 24 << 20


def fill(device, sizes):
    pieces = []
    for size in sizes:
        pieces.append((device.alloc(size), size))
    return pieces


def main():
    device = Device()
    pieces = fill(device, [1000, 300 << 10] * 40 + [PIECE, PIECE - 4096] * 30)
    for ptr, size in pieces[1::2]:
        device.free(ptr, size)
    try:
        device.alloc(2 << 30)
    except CudaError:
        if "--stop" in sys.argv:
            os._exit(1)
    if "--reset" in sys.argv:
        load_runtime().cudaDeviceReset()
        pieces = []
    for ptr, size in pieces[0::2]:
        device.free(ptr, size)
    fill(device, [900 << 20, 5000, 5000])
    sys.exit(1)


if __name__ == "__main__":
    main()
