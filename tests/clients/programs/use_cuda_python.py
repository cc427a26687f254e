# SPDX-License-Identifier: Apache-2.0
"""The driver through cuda.bindings; streams, buffers, pools and a compiled kernel through cuda.core."""
import json

from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

KERNEL = 'extern "C" __global__ void fill(int *x, int n) { int i = threadIdx.x; if (i < n) x[i] = i; }'


def call(answer):
    status, *rest = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(status.name)
    return rest[0] if rest else None


def compute(device):
    stream = device.create_stream()
    buffer = device.allocate(1 << 20, stream=stream)
    program = Program(KERNEL, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("fill")
    launch(stream, LaunchConfig(grid=1, block=256), kernel, buffer, 256)
    stream.sync()
    print(buffer.size, device.name, device.memory_resource.attributes.used_mem_current)
    buffer.close(stream)
    stream.sync()
    print(device.memory_resource.attributes.used_mem_current)


def copy():
    there, data = call(driver.cuMemAlloc(1 << 16)), bytes(range(256)) * 256
    back = bytearray(1 << 16)
    call(driver.cuMemcpyHtoD(there, data, len(data)))
    call(driver.cuMemcpyDtoH(back, there, len(back)))
    call(driver.cuMemFree(there))
    print(back == data, call(driver.cuMemGetInfo()))


def fill(held):
    while True:
        held.append(call(driver.cuMemAlloc(1 << 28)))  # HERE


def main():
    device = Device(0)
    device.set_current()
    compute(device)
    copy()
    held = []
    try:
        fill(held)
    except RuntimeError as error:
        print(error)
    idle = device.memory_resource.attributes.used_mem_current
    print(json.dumps({"held": (len(held) << 28) + idle}))


main()
