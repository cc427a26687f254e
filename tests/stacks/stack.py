# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python programs: the end of stack.h's programs, which prints and holds."""
import ctypes
import signal
import struct
import sys

MIB = 1 << 20
OWN_USED = 168  # where struct gpusim_device has own_used


def ok(status):
    if status:
        sys.exit(f"CUDA failed: {status}")


def wants(kind):
    return kind in sys.argv[1:]


def hold():
    info = ctypes.create_string_buffer(2048)
    ok(ctypes.CDLL("libcuda.so.1").gpusim_device_info(0, info))
    print("live bytes:", struct.unpack_from("<Q", info, OWN_USED)[0], flush=True)
    signal.pause()
