# SPDX-License-Identifier: Apache-2.0
"""The same with XLA's defaults: it takes three quarters of the GPU first, and it is that pool which has no more."""
import json

import jax
import numpy


def main():
    device = jax.local_devices()[0]
    held = []
    try:
        while True:
            held.append(jax.device_put(numpy.zeros(1 << 26, dtype=numpy.float32), device).block_until_ready())  # HERE
    except Exception as error:
        print(type(error).__name__, "RESOURCE_EXHAUSTED" in str(error), len(held))
    print(json.dumps({"held": device.memory_stats()["pool_bytes"]}))


main()
