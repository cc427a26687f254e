# SPDX-License-Identifier: Apache-2.0
"""All pairs by broadcasting, each operation by itself: the difference of each pair is an array.  After jax-ml/jax#1918."""
import sys

import jax
import jax.numpy as jnp


def compute_distances(a, b):
    return jnp.power(a[:, None, :] - b[None, :, :], 2).sum(-1)  # HERE


def main(is_fixed):
    a, b = jnp.ones((2000, 256)), jnp.zeros((2000, 256))
    distances = (jax.jit(compute_distances) if is_fixed else compute_distances)(a, b)
    print(distances.block_until_ready().shape)


main("fixed" in sys.argv)
