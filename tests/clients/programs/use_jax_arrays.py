# SPDX-License-Identifier: Apache-2.0
"""Three programs of JAX: at twenty moments, what is recorded is what jax.live_arrays() holds, to the byte."""
import functools
import json
import os
import random
import subprocess

# Autotuning compiles each product dozens of times, and makes no arrays.
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
import jax
import jax.numpy as jnp

random.seed(7)
SEEN = []
RECORDING = os.environ.get("GPUCACHE_OUTPUT", "").replace("%p", str(os.getpid()))


def look(name, results):
    """The bytes of all arrays; with the library, those of the recording are as many."""
    jax.block_until_ready(results)
    live = sum(a.nbytes for a in jax.live_arrays())
    print(name, live, flush=True)
    SEEN.append(live)
    if os.environ.get("GPUCACHE") != "0":
        told = subprocess.run([os.environ["REPORT"], "--json", RECORDING], capture_output=True, text=True, check=True).stdout
        ours = json.loads(told)["devices"][0]["torch"]["allocated_bytes"]
        if ours != live:
            raise SystemExit(f"{name}: {ours} bytes are recorded, JAX has {live}")


def moments(n, steps):
    return set(random.sample(range(steps), n))


def mlp():
    sizes = (784, 512, 512, 10)
    weights = [jnp.full((a, b), .01) for a, b in zip(sizes, sizes[1:])]
    state = [jnp.zeros_like(w) for w in weights]

    @jax.jit
    def step(weights, state, x):
        def loss(weights):
            for w in weights:
                h = jnp.tanh((x if w.shape[0] == 784 else h) @ w)
            return (h * h).mean()
        state = jax.tree.map(lambda s, g: .9 * s + g, state, jax.grad(loss)(weights))
        return jax.tree.map(lambda w, s: w - .1 * s, weights, state), state

    chosen, kept = moments(7, 20), []
    for i in range(20):
        weights, state = step(weights, state, jnp.ones((32 + i % 3, 784)))
        if i % 4 == 0:
            kept.append(weights[-1])
        if i in chosen:
            look("mlp", weights)


def transformer():
    depth, width, heads, tokens = 3, 64, 2, 32
    weights = {"qkv": jnp.full((depth, width, 3 * width), .01), "up": jnp.full((depth, width, 4 * width), .01),
               "down": jnp.full((depth, 4 * width, width), .01)}

    @jax.checkpoint
    def block(x, w):
        q, k, v = jnp.split((x @ w["qkv"]).reshape(-1, tokens, heads, 3 * width // heads), 3, -1)
        scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k), -1)
        x = x + jnp.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape)
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    @functools.partial(jax.jit, donate_argnums=0)
    def step(weights, x):
        def loss(weights):
            return jax.lax.scan(block, x, weights)[0].mean()
        return jax.tree.map(lambda w, g: w - .1 * g, weights, jax.grad(loss)(weights))

    chosen = moments(7, 20)
    for i in range(20):
        weights = step(weights, jnp.ones((2 + i % 2, tokens, width)))
        if i in chosen:
            look("transformer", weights)


def inference():
    @functools.partial(jax.jit, donate_argnums=0)
    def decode(cache, x, at):
        cache = jax.lax.dynamic_update_slice(cache, x[None], (at, 0))
        return cache, jnp.tanh(cache @ x)

    cache, chosen, outputs = jnp.zeros((128, 256)), moments(6, 20), []
    for i in range(20):
        cache, out = decode(cache, jnp.full((256,), float(i)), i)
        outputs.append(out)
        if i % 7 == 6:
            outputs.clear()
        if i in chosen:
            look("inference", out)


print(jax.devices())
mlp()
transformer()
inference()
print(json.dumps({"held": max(SEEN), "compared": len(SEEN)}))
