# SPDX-License-Identifier: Apache-2.0
"""A step that is not given its state to keep: the old and the new one are there at once.  After goodfire-ai/spd#971."""
import functools
import sys

import jax
import jax.numpy as jnp


def init():
    params = {f"layer{i}": jnp.full((4096, 4096), .01) for i in range(9)}
    return {"params": params, "m": jax.tree.map(jnp.zeros_like, params), "v": jax.tree.map(jnp.zeros_like, params)}


def step(state, x):
    def loss(params):
        h = x
        for w in params.values():
            h = jnp.tanh(h @ w)
        return h.mean()

    grads = jax.grad(loss)(state["params"])
    m = jax.tree.map(lambda m, g: .9 * m + .1 * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: .99 * v + .01 * g * g, state["v"], grads)
    params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), state["params"], m, v)
    return {"params": params, "m": m, "v": v}


def main(is_fixed):
    train_step = functools.partial(jax.jit, donate_argnums=0)(step) if is_fixed else jax.jit(step)
    state = init()
    for _ in range(3):
        state = train_step(state, jnp.ones((8, 4096)))  # HERE
    print(jax.block_until_ready(state)["params"]["layer0"].shape)


main("fixed" in sys.argv)
