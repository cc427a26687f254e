# SPDX-License-Identifier: Apache-2.0
"""jacrev pulls all rows of a Jacobian back at once, so each intermediate is as many times as large.  After uwplasma/vmex#328."""
import sys

import jax
import jax.numpy as jnp

N = 1024


def residuals(x):
    basis = jnp.sin(jnp.outer(x, jnp.arange(1., 1025.)))
    for _ in range(4):
        basis = jnp.sin(jnp.cumsum(basis, 0) + 1)
    return basis.sum(1)


@jax.jit
def jacobian(x):
    return jax.jacrev(residuals)(x)


@jax.jit
def jacobian_in_parts(x):
    pull_back = jax.vjp(residuals, x)[1]
    return jax.lax.map(lambda row: pull_back(row)[0], jnp.eye(N), batch_size=32)


def main(is_fixed):
    x = jnp.ones(N)
    if is_fixed:
        print(jacobian_in_parts(x).block_until_ready().shape)
    else:
        print(jacobian(x).block_until_ready().shape)  # HERE


main("fixed" in sys.argv)
