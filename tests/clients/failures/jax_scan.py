# SPDX-License-Identifier: Apache-2.0
"""The gradient of a long scan keeps what each step computed.  After jax-ml/jax#27748."""
import sys

import jax
import jax.numpy as jnp

STEPS = 800


def body(state, _):
    state = state + .1 * jnp.sin(state) * jnp.tanh(state @ WEIGHTS)
    return state / (1 + jnp.abs(state)), None


WEIGHTS = jnp.full((1024, 1024), .01)


def main(is_fixed):
    @jax.jit
    def gradient(state):
        return jax.grad(lambda s: jax.lax.scan(jax.checkpoint(body) if is_fixed else body, s, None, STEPS)[0].sum())(state)

    state = jnp.ones((512, 1024))
    for _ in range(3):
        state = state - .1 * gradient(state)  # HERE
    print(state.block_until_ready().shape)


main("fixed" in sys.argv)
