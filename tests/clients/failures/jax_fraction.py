# SPDX-License-Identifier: Apache-2.0
"""A tenth of the GPU was enough once: XLA's pool is full while the GPU is not.  After jax-ml/jax#19267."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".10")
import jax
import jax.numpy as jnp


@jax.jit
def smooth(image):
    return (image + jnp.roll(image, 1, 0) + jnp.roll(image, 1, 1)) / 3


def main():
    image = jnp.ones((6000, 6000))
    for _ in range(3):
        image = smooth(image) - image  # HERE
    print(image.block_until_ready().shape)


main()
