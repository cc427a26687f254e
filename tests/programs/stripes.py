# SPDX-License-Identifier: Apache-2.0
"""Fills the GPU with equal blocks, frees every second one, and asks for many of another size."""
import argparse

from train import CudaError, Device


def fill(device, size):
    blocks = []
    try:
        while True:
            blocks.append(device.alloc(size))
    except CudaError:
        return blocks


def main():
    parser = argparse.ArgumentParser(prog="stripes.py")
    parser.add_argument("block", type=int, help="bytes")
    parser.add_argument("request", type=int, help="bytes")
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    device = Device()
    for block in fill(device, options.block)[1::2]:
        device.free(block, options.block)
    got = 0
    try:
        while got < options.count:
            device.alloc(options.request)
            got += 1
    except CudaError:
        pass
    print(f"{got} of {options.count}")


if __name__ == "__main__":
    main()
