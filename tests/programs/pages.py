# SPDX-License-Identifier: Apache-2.0
"""Memory of one GPU used by another, before and after peer access is enabled; prints the status of each use.

peer      the second GPU fills blocks of the first: one from before cudaDeviceEnablePeerAccess, and one from after it
"""
import ctypes

from train import Device

MIB = 1 << 20


def main():
    device = Device()
    lib = device.lib
    before = device.alloc(30 * MIB)
    device.check("cudaSetDevice", lib.cudaSetDevice(1))
    device.check("cudaDeviceEnablePeerAccess", lib.cudaDeviceEnablePeerAccess(0, 0))
    device.check("cudaSetDevice", lib.cudaSetDevice(0))
    after = device.alloc(30 * MIB)
    device.check("cudaSetDevice", lib.cudaSetDevice(1))
    for block in (before, after):
        statuses = (lib.cudaMemset(block, 7, ctypes.c_size_t(30 * MIB)), lib.cudaDeviceSynchronize())
        print(*statuses)


if __name__ == "__main__":
    main()
