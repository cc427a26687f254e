# SPDX-License-Identifier: Apache-2.0
"""Fills the GPU with small tensors, frees them, and requests the same memory in two large ones."""
import argparse
import sys

from train import CudaError, Device

PIECE = 3 << 20


def main():
    parser = argparse.ArgumentParser(prog="refill.py")
    parser.add_argument("--pieces", type=int, default=400)
    options = parser.parse_args()
    device = Device()
    pieces = [device.alloc(PIECE) for _ in range(options.pieces)]
    for piece in pieces:
        device.free(piece, PIECE)
    # Three quarters of what was just free, in two pieces that fit no cached one.
    big = options.pieces * PIECE * 3 // 8
    for ptr in [device.alloc(big), device.alloc(big)]:
        device.free(ptr, big)
    print("refilled")


if __name__ == "__main__":
    try:
        main()
    except CudaError as error:
        sys.exit(str(error))
