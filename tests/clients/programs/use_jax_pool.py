# SPDX-License-Identifier: Apache-2.0
"""The same with XLA's defaults: it takes three quarters of the GPU first, and it is that pool which has no more."""
import json
import os

os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # as in use_jax.py
from jax._src import hardware_utils

hardware_utils.has_visible_nvidia_gpu = lambda: True

import jax
import numpy


def main():
    device = jax.local_devices()[0]
    held = []
    try:
        while True:
            held.append(jax.device_put(numpy.zeros(1 << 26, dtype=numpy.float32), device).block_until_ready())
    except Exception as error:
        print(type(error).__name__, "RESOURCE_EXHAUSTED" in str(error), len(held))
    print(json.dumps({"held": device.memory_stats()["pool_bytes"]}))


main()
