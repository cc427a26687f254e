# SPDX-License-Identifier: Apache-2.0
"""What pynvml, gpustat and nvitop say of a GPU that this process and another one use."""
import ctypes
import json
import os

import gpustat
import nvitop
import pynvml

SIZE = 1 << 28


def look(runtime, handle):
    """What each says is used, of it by us, by others, and whether that agrees with what CUDA says."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    processes = {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    stats = gpustat.new_query().gpus[0]
    device = nvitop.Device(0)
    print("pynvml", memory.free == free.value, memory.used, processes[os.getpid()], processes[4711])
    print("gpustat", stats.memory_used, sorted(p["gpu_memory_usage"] for p in stats.processes))
    print("nvitop", device.memory_used(), sorted(p.gpu_memory() for p in device.processes().values()))


def fill(runtime, held):
    at = ctypes.c_void_p()
    while runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(SIZE)) == 0:  # HERE
        held.append(at.value)


def main():
    runtime = ctypes.CDLL("libcudart.so.13")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    held = []
    fill(runtime, held)
    look(runtime, handle)
    print(json.dumps({"held": len(held) * SIZE}))


main()
