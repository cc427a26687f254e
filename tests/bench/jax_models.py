# SPDX-License-Identifier: Apache-2.0
"""Steps of models of several kinds, for jax_step.py."""
import functools

import jax
import jax.numpy as jnp


def train(loss, weights, batch):
    """A step of Adam, jitted, with its state donated: three arrays for each weight."""
    @functools.partial(jax.jit, donate_argnums=0)
    def update(state, x):
        weights, mean, square = state
        value, slope = jax.value_and_grad(loss)(weights, x)
        mean = jax.tree.map(lambda m, g: .9 * m + .1 * g, mean, slope)
        square = jax.tree.map(lambda v, g: .99 * v + .01 * g * g, square, slope)
        weights = jax.tree.map(lambda w, m, v: w - .001 * m / (jnp.sqrt(v) + 1e-8), weights, mean, square)
        return (weights, mean, square), value

    state = weights, jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)

    def step():
        nonlocal state
        state, value = update(state, batch)
        jax.block_until_ready(value)
    return step


def mlp():
    """Three layers: 19 arrays a step."""
    sizes = (784, 512, 512, 10)
    weights = [{"w": jnp.full((a, b), .01), "b": jnp.zeros(b)} for a, b in zip(sizes, sizes[1:])]

    def loss(weights, x):
        for layer in weights:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return (x * x).mean()
    return train(loss, weights, jnp.ones((128, 784)))


WIDTH, HEADS = 256, 4


def block_weights(*depth):
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "project": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH),
              "qkv bias": (3 * WIDTH,), "up bias": (4 * WIDTH,), "before": (WIDTH,), "between": (WIDTH,)}
    return {name: jnp.full(depth + shape, .01) for name, shape in shapes.items()}


def normed(x, scale):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale


@jax.checkpoint
def block(x, w):
    q, k, v = jnp.split((normed(x, w["before"]) @ w["qkv"] + w["qkv bias"]).reshape(*x.shape[:2], HEADS, -1), 3, -1)
    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k), -1)
    x = x + jnp.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape) @ w["project"]
    return x + jax.nn.gelu(normed(x, w["between"]) @ w["up"] + w["up bias"]) @ w["down"], None


def scan():
    """A transformer of 12 layers by scan, with checkpoints: 25 arrays a step."""
    return train(lambda w, x: (jax.lax.scan(block, x, w)[0] ** 2).mean(), block_weights(12), jnp.ones((8, 128, WIDTH)))


def layers():
    """The same with weights of its own in each of 6 layers, as flax has them: 145 arrays a step."""
    def loss(weights, x):
        for layer in weights:
            x, _ = block(x, layer)
        return (x ** 2).mean()
    return train(loss, [block_weights() for _ in range(6)], jnp.ones((8, 128, WIDTH)))


def decode():
    """A token after another through 4 layers with a cache of each, which is donated: 9 arrays a step."""
    weights = [block_weights() for _ in range(4)]

    @functools.partial(jax.jit, donate_argnums=1)
    def next_token(weights, caches, x, at):
        kept = []
        for w, (keys, values) in zip(weights, caches):
            q, k, v = jnp.split(normed(x, w["before"]) @ w["qkv"] + w["qkv bias"], 3, -1)
            keys = jax.lax.dynamic_update_slice(keys, k, (at, 0))
            values = jax.lax.dynamic_update_slice(values, v, (at, 0))
            kept.append((keys, values))
            x = x + jax.nn.softmax(q @ keys.T, -1) @ values @ w["project"]
            x = x + jax.nn.gelu(normed(x, w["between"]) @ w["up"] + w["up bias"]) @ w["down"]
        return x, kept

    caches = [(jnp.zeros((512, WIDTH)), jnp.zeros((512, WIDTH))) for _ in weights]
    start = jnp.ones((1, WIDTH))
    at = 0

    def step():
        nonlocal caches, at
        out, caches = next_token(weights, caches, start, at % 512)
        out.block_until_ready()
        at += 1
    return step


def step_of(name):
    return {"mlp": mlp, "scan": scan, "layers": layers, "decode": decode}[name]()
