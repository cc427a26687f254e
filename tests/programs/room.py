# SPDX-License-Identifier: Apache-2.0
"""Programs that need nearly all of the GPU; each prints what it got, for a comparison with the plain driver.

fill SIZE     blocks of SIZE bytes until there are no more
large         15.5 GiB in one piece, freed; then as much again in GiB, and a last piece of 640 MiB
piece PART    half of the GPU in stripes of 4 MiB, every second freed; PART percent of what is said to be free
vary SEED     blocks of 64 MiB to 2 GiB come and go, 97 of 100 bytes live
"""
import ctypes
import random
import sys

from train import CudaError, Device

MIB = 1 << 20
GIB = 1 << 30


def mem_info(device):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    device.check("cudaMemGetInfo", device.lib.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return free.value, total.value


def fits(device, size):
    try:
        return device.alloc(size)
    except CudaError:
        return None


def fill(device, size, most=1 << 30):
    blocks = []
    while len(blocks) < most:
        block = fits(device, size)
        if not block:
            break
        blocks.append(block)
    return blocks


def large(device):
    device.free(device.alloc(31 * GIB // 2), 31 * GIB // 2)
    return f"{len(fill(device, GIB, 23))} {bool(fits(device, 640 * MIB))}"


def piece(device, part):
    blocks = fill(device, 4 * MIB, mem_info(device)[1] // 2 // (4 * MIB))
    for block in blocks[::2]:
        device.free(block, 4 * MIB)
    return bool(fits(device, mem_info(device)[0] * part // 100))


def vary(device, seed):
    dice = random.Random(seed)
    most = mem_info(device)[1] * 97 // 100
    blocks = []
    for count in range(400):
        size = dice.randrange(32, GIB // MIB) * 2 * MIB
        while device.live_bytes + size > most:
            device.free(*blocks.pop(dice.randrange(len(blocks))))
        block = fits(device, size)
        if not block:
            return count
        blocks.append((block, size))
    return 400


def main():
    scene, *numbers = sys.argv[1:]
    device = Device()
    if scene == "fill":
        print(len(fill(device, int(numbers[0]))))
    else:
        print({"large": large, "piece": piece, "vary": vary}[scene](device, *map(int, numbers)))


if __name__ == "__main__":
    main()
