# SPDX-License-Identifier: Apache-2.0
"""How much stack an allocation takes that Python makes: a line for each kind of call, as `depth measure`.

    depth.py LIBFOREIGN
"""
import ctypes
import sys

from train import load_runtime

load_runtime()
LIB = ctypes.CDLL(sys.argv[1])
LIB.foreign_depth.argtypes = [ctypes.c_size_t]
LIB.foreign_depth.restype = ctypes.c_size_t


def call(size, depth=0):
    return call(size, depth - 1) if depth else LIB.foreign_depth(size)


def other(size):
    return [LIB.foreign_depth(size) for _ in range(2)][-1]


for name, size, function in (("first call", 1000, call), ("malloc", 1000, call), ("malloc elsewhere", 1000, other),
                             ("deep malloc", 1000, lambda size: call(size, 80)), ("failure", 1 << 40, call), ("failure elsewhere", 1 << 40, other)):
    print(f"{name}: {function(size)}")
