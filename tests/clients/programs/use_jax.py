# SPDX-License-Identifier: Apache-2.0
"""Arrays that XLA's own allocator holds, and more of them until there is no more."""
import json
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.99"  # and not its own limit: the GPU's
import jax
import numpy

BLOCK = numpy.zeros(1 << 26, dtype=numpy.float32)


def fill(device, held):
    while True:
        held.append(jax.device_put(BLOCK, device).block_until_ready())  # HERE


def main():
    device = jax.local_devices()[0]
    x = jax.device_put(numpy.arange(1 << 20, dtype=numpy.float32), device)
    print(device.platform, device.device_kind, float(numpy.asarray(x).sum()))
    held = []
    try:
        fill(device, held)
    except Exception as error:
        print(type(error).__name__, len(held))
    stats = device.memory_stats()
    print(stats)
    print(json.dumps({"held": stats["pool_bytes"]}))


main()
