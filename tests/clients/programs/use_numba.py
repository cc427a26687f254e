# SPDX-License-Identifier: Apache-2.0
"""Arrays of each kind, streams, a kernel that is compiled, and memory until there is no more."""
import json

import numpy
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def compute():
    host = numpy.arange(1 << 20, dtype=numpy.float32)
    there = cuda.to_device(host)
    print(float(there.copy_to_host().sum()), there[10:20].copy_to_host().tolist())
    stream = cuda.stream()
    with cuda.pinned(host):
        print(float(cuda.to_device(host, stream=stream).copy_to_host(stream=stream).sum()))
    stream.synchronize()
    print(cuda.pinned_array(10).shape, cuda.mapped_array(10).shape, cuda.managed_array(10).shape)
    double[4096, 256](there)
    cuda.synchronize()


def fill(held):
    while True:
        held.append(cuda.device_array(1 << 28, dtype=numpy.uint8))  # HERE


def main():
    compute()
    cuda.current_context().deallocations.clear()
    held = []
    try:
        fill(held)
    except cuda.cudadrv.driver.CudaAPIError as error:
        print(error)
    print(json.dumps({"held": sum(array.nbytes for array in held)}))


main()
