# SPDX-License-Identifier: Apache-2.0
"""An array that is to be in the host's memory is made on the GPU first.  After jax-ml/jax#8933."""
import sys

import jax
import jax.numpy as jnp
import numpy as np


def main(is_fixed):
    cpu = jax.devices("cpu")[0]
    weights = jnp.ones((1000, 1000))
    if is_fixed:
        table = jax.device_put(np.zeros((29_000, 29_000), np.float32), cpu)
    else:
        table = jax.device_put(jnp.zeros((29_000, 29_000)), cpu)  # HERE
    print(table.block_until_ready().shape, weights.shape)


main("fixed" in sys.argv)
