# SPDX-License-Identifier: Apache-2.0
"""vmap over the index that is written to: each index gets a copy of the whole array.  After jax-ml/jax#23358."""
import sys

import jax
import jax.numpy as jnp

x = jnp.zeros(40_000)


def total_with(i):
    return x.at[i].set(7).sum()  # HERE


def main(is_fixed):
    indices = jnp.arange(x.size)
    totals = jax.lax.map(total_with, indices, batch_size=1000) if is_fixed else jax.vmap(total_with)(indices)
    print(totals.block_until_ready().shape)


main("fixed" in sys.argv)
