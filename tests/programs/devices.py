# SPDX-License-Identifier: Apache-2.0
"""One process, several GPUs: each has its own holders, and one of them runs out of memory.

  devices.py MODE N_GPUS FAILING

  fill   a cache on each GPU but FAILING, by threads of their own; weights on FAILING; what all of them take
         comes from one line, too; then one request too many there
  leak   the other GPUs take and give back at once, 20,000 times; FAILING leaks until there is no more
  still  the other GPUs leak; FAILING holds what it took first, and then asks for too much
"""
import ctypes
import sys
import threading

from train import load_runtime

MIB = 1 << 20
N_CHURNS = 10000


class Gpu:
    def __init__(self, lib, number):
        self.lib = lib
        self.number = number
        self.held = []

    def alloc(self, n_bytes):
        ptr = ctypes.c_void_p()
        status = self.lib.cudaSetDevice(self.number) or self.lib.cudaMalloc(ctypes.byref(ptr), n_bytes)
        if not status:
            self.held.append(ptr)
        return status

    def free(self):
        self.lib.cudaFree(self.held.pop())


def fill_cache(gpu):
    for _ in range(30):
        gpu.alloc(100 * MIB)


def load_weights(gpu):
    for _ in range(10):
        gpu.alloc(150 * MIB)


def everywhere(gpu):
    gpu.alloc((gpu.number + 1) * 64 * MIB)


def ask_too_much(gpu):
    if gpu.alloc(3000 * MIB) == 0:
        sys.exit("there was room")


def churn(gpu):
    for _ in range(N_CHURNS):
        gpu.alloc(MIB)
        gpu.alloc(2 * MIB)
        gpu.free()
        gpu.free()


def remember_loss(gpu):
    return gpu.alloc(12 * MIB)


def leak(gpu, n=1 << 30):
    for _ in range(n):
        if remember_loss(gpu):
            return


def in_threads(function, gpus):
    threads = [threading.Thread(target=function, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    mode, n_gpus, failing = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    lib = load_runtime()
    gpus = [Gpu(lib, i) for i in range(n_gpus)]
    others = [gpu for gpu in gpus if gpu.number != failing]
    if mode == "fill":
        in_threads(fill_cache, others)
        in_threads(everywhere, gpus)
        load_weights(gpus[failing])
    elif mode == "leak":
        in_threads(churn, others)
        leak(gpus[failing])
        return
    elif mode == "still":
        load_weights(gpus[failing])
        in_threads(lambda gpu: leak(gpu, 200), others)
        for _ in range(400):
            gpus[failing].alloc(MIB)
            gpus[failing].free()
    ask_too_much(gpus[failing])


main()
