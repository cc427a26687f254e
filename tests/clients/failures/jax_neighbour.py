# SPDX-License-Identifier: Apache-2.0
"""Another program has most of the GPU; what JAX asks for at its start, and later from a thread of its own, is not there.  After jax-ml/jax#17217."""
import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x):
    return weights - .1 * jax.grad(lambda w: jnp.tanh(x @ w).mean())(weights)


def main():
    weights = jnp.full((8192, 8192), .01)
    history = []
    for _ in range(5):
        weights = step(weights, jnp.ones((64, 8192)))
        history.append(weights)
    print(weights.block_until_ready().shape)


main()
