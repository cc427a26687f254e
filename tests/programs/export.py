# SPDX-License-Identifier: Apache-2.0
"""A program that looks cudaIpcGetMemHandle up, so that no module imports it; prints the status of each step.

export [export|range]   does this to a small block, frees another, so that memory is short, and exports a large block
"""
import ctypes
import sys

from train import Device

MIB = 1 << 20


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


def export(device, block):
    return device.lib.cudaIpcGetMemHandle(ctypes.byref(Handle()), block)


def main():
    device = Device()
    early = device.alloc(2 * MIB)
    if "export" in sys.argv:
        print("early", export(device, early))
    if "range" in sys.argv:
        base, size = ctypes.c_void_p(), ctypes.c_size_t()
        driver = ctypes.CDLL("libcuda.so.1")
        print("early", driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), early))
    device.free(device.alloc(150 * MIB), 150 * MIB)
    large = device.alloc(220 * MIB)
    print("large", export(device, large))
    device.free(large, 220 * MIB)
    print("other", export(device, device.alloc(100 * MIB)))


if __name__ == "__main__":
    main()
