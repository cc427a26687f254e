# SPDX-License-Identifier: Apache-2.0
"""A whole data set becomes an array of the GPU before the first batch.  After markean/aimz#168."""
import sys

import jax
import jax.numpy as jnp
import numpy


class Dataset:
    def __init__(self, images, to_jax):
        self.images = jnp.asarray(images) if to_jax else images  # HERE

    def batches(self, size):
        for i in range(0, len(self.images), size):
            yield jax.device_put(self.images[i:i + size])


@jax.jit
def step(weights, images):
    return weights - .1 * jax.grad(lambda w: jnp.tanh(images.reshape(len(images), -1) @ w).mean())(weights)


def main(is_fixed):
    weights = jnp.zeros((64 * 64 * 3, 10))
    dataset = Dataset(numpy.zeros((70_000, 64, 64, 3), numpy.float32), to_jax=not is_fixed)
    for images in dataset.batches(5000):
        weights = step(weights, images)
    print(weights.block_until_ready().shape)


main("fixed" in sys.argv)
