# SPDX-License-Identifier: Apache-2.0
"""A trainer keeps the variables that it began with beside the state that it trains.  After keras-team/keras-core#888."""
import functools
import sys

import jax
import jax.numpy as jnp


class Model:
    def __init__(self, layers, width):
        self.variables = [jnp.full((width, width), .01) for _ in range(layers)]  # HERE


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, x):
    def loss(params):
        h = x
        for w in params:
            h = jnp.tanh(h @ w)
        return h.mean()

    grads = jax.grad(loss)(state["params"])
    norm = jnp.sqrt(sum((g * g).sum() for g in grads))
    momentum = [.9 * m + g / norm for m, g in zip(state["momentum"], grads)]
    return {"params": [p - .1 * m for p, m in zip(state["params"], momentum)], "momentum": momentum}


def fit(model, is_fixed):
    params = model.variables if is_fixed else [jnp.copy(v) for v in model.variables]
    state = {"params": params, "momentum": [jnp.zeros_like(v) for v in params]}
    if is_fixed:
        model.variables = params = None
    for _ in range(3):
        state = train_step(state, jnp.ones((8, 4096)))
    model.variables = jax.block_until_ready(state)["params"]


def main(is_fixed):
    model = Model(12, 4096)
    fit(model, is_fixed)
    print(len(model.variables))


main("fixed" in sys.argv)
