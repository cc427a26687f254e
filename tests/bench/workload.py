#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a generated trace for gpumem-replay, with streams and kernels, which public traces lack.

    workload.py training:steps=4,seed=7 >training.csv
    workload.py random | gpumem-replay /dev/stdin

Most memory is freed while a kernel still uses it, as in real programs, so the race detector catches a policy that
reuses the memory at once.  Before a kernel uses a block of another stream, it is ordered after that stream's work, so
the program itself has no race.  The same arguments give the same trace on every machine.  docs/REPLAY.md describes the
format.
"""

import sys

KIB, MIB = 1 << 10, 1 << 20

# Times in nanoseconds.  STEP is the host's time for each call, about that of a kernel launch.
US = 1000
STEP = 5 * US

COMPUTE, SIDE = 0, 1  # streams; SIDE is for communication and copies

DEFAULTS = {
    "training": {"steps": 6, "layers": 24, "width": 16 * MIB, "bucket": 4, "vary": 10},
    "inference": {"requests": 64, "batch": 8, "layers": 4, "tokens": 64, "token": 64 * KIB},
    "pipeline": {"items": 4000, "producers": 2, "consumers": 2, "depth": 64, "size": 8 * MIB},
    "random": {"steps": 20000, "streams": 4, "blocks": 400, "size": 64 * MIB},
}


class Block:
    def __init__(self, number, size, stream):
        self.number, self.size, self.stream = number, size, stream


class Script:
    """The calls of one host thread; each prints a row, STEP after the last."""

    def __init__(self, seed):
        # The product spreads the bits of small seeds.  The state of xorshift must not be 0, because it would stay 0.
        self.state = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64 | 1
        self.time = 0
        self.n_blocks = 0
        print("op,id,size,stream,time_us")

    def row(self, op, number=0, size=0, stream=0):
        self.time += STEP
        print(f"{op},{number},{size},{stream},{self.time // US}")

    def alloc(self, stream, size):
        self.n_blocks += 1
        self.row("alloc", self.n_blocks, size, stream)
        return Block(self.n_blocks, size, stream)

    def free(self, *blocks):
        for block in blocks:
            self.row("free", block.number, 0, block.stream)

    def order(self, stream, other):
        self.row("order", other, 0, stream)

    def kernel(self, stream, duration, *blocks):
        """Submits a kernel that uses the blocks; the host continues."""
        for block in blocks:
            if block.stream != stream:
                self.order(stream, block.stream)
            self.row("work", block.number, duration, stream)
            duration = 0

    def sync(self):
        self.row("sync")

    def random(self, n):
        """Returns a number from 0 to n - 1, by xorshift64*: Python's own generator may change with its version."""
        self.state ^= self.state >> 12
        self.state ^= self.state << 25 & 2**64 - 1
        self.state ^= self.state >> 27
        return (self.state * 0x2545F4914F6CDD1D % 2**64 >> 11) % n

    def random_size(self, least, most):
        """Returns a size from `least` to `most`; every range between two powers of two is equally likely."""
        top = least << self.random((most // least).bit_length())
        return top + self.random(top if top < most - top else most - top + 1)


class Layer:
    """Weights of four times `width` bytes.  The first step allocates the optimizer's moments, which stay."""

    def __init__(self, script, width):
        self.weights = script.alloc(COMPUTE, 4 * width)
        self.moments = self.gradient = self.activation = None


def train_step(script, layers, width, bucket):
    batch = script.alloc(SIDE, width // 8 + 1)
    script.kernel(SIDE, 50 * US, batch)
    script.kernel(COMPUTE, 10 * US, batch)
    script.free(batch)
    for layer in layers:
        workspace = script.alloc(COMPUTE, width // 4 + 1)
        layer.activation = script.alloc(COMPUTE, width)
        script.kernel(COMPUTE, 300 * US, layer.weights, workspace, layer.activation)
        script.free(workspace)
    above = script.alloc(COMPUTE, width)
    for i, layer in reversed(list(enumerate(layers))):
        own = script.alloc(COMPUTE, width)
        layer.gradient = script.alloc(COMPUTE, layer.weights.size)
        script.kernel(COMPUTE, 600 * US, layer.activation, layer.gradient, above, own)
        script.free(above, layer.activation)
        above = own
        if i % bucket == 0:
            reduced = layers[i : i + bucket]
            summed = script.alloc(SIDE, len(reduced) * layer.weights.size)
            script.kernel(SIDE, 500 * US, summed, *(each.gradient for each in reduced))
            script.free(summed)
    script.free(above)
    script.order(COMPUTE, SIDE)
    for layer in layers:
        update = script.alloc(COMPUTE, layer.weights.size)
        layer.moments = layer.moments or script.alloc(COMPUTE, 2 * layer.weights.size)
        script.kernel(COMPUTE, 100 * US, layer.weights, layer.moments, layer.gradient, update)
        script.free(update, layer.gradient)
    script.sync()  # the host reads the loss


def training(script, steps, layers, width, bucket, vary):
    """Each step: forward, backward, the reduction of `bucket` layers' gradients on a side stream, optimizer."""
    model = [Layer(script, width) for _ in range(layers)]
    for _ in range(steps):
        percent = 100 - script.random(vary + 1)  # a batch may be shorter
        train_step(script, model, width * percent // 100, bucket)


class Answer:
    """A request: n_left tokens to generate, n_tokens tokens in its caches, and a key-value cache for each layer."""

    def __init__(self, script, layers, tokens, token):
        self.token = token
        self.n_tokens = 1 + script.random(256)
        self.n_left = 1 + script.random(tokens)
        self.caches = []
        prompt = script.alloc(SIDE, self.n_tokens * 8)
        script.kernel(SIDE, 20 * US, prompt)
        for _ in range(layers):
            self.caches.append(script.alloc(COMPUTE, self.n_tokens * token))
            script.kernel(COMPUTE, self.n_tokens * US, self.caches[-1])
        script.kernel(COMPUTE, 30 * US, prompt)
        script.free(prompt)

    def generate(self, script):
        """Generates a token: copies the cache of each layer into a new one with room for one more token."""
        self.n_tokens += 1
        self.n_left -= 1
        for i, cache in enumerate(self.caches):
            self.caches[i] = script.alloc(COMPUTE, self.n_tokens * self.token)
            script.kernel(COMPUTE, 30 * US, cache, self.caches[i])
            script.free(cache)
            if self.n_left == 0:
                script.free(self.caches[i])


def inference(script, requests, batch, layers, tokens, token):
    """Serves requests of different lengths, `batch` at a time.  Their key-value caches grow by copying."""
    answers = [None] * batch
    while requests > 0 or any(answers):
        for i in range(batch):
            if not answers[i] and requests > 0:
                requests -= 1
                answers[i] = Answer(script, layers, tokens, token)
            if answers[i]:
                answers[i].generate(script)
                if answers[i].n_left == 0:
                    answers[i] = None
        script.sync()  # the host reads the tokens


def pipeline(script, items, producers, consumers, depth, size):
    """Passes items from producers to consumers, on a stream each.  Memory is freed while the consumer's kernel runs."""
    for i in range(items):
        producer = i % producers
        consumer = producers + script.random(consumers)
        item = script.alloc(producer, script.random_size(max(size // 64, 1), size))
        result = script.alloc(consumer, item.size // 8 + 1)
        script.kernel(producer, 20 * US, item)
        script.kernel(consumer, 60 * US + script.random(60 * US), item, result)
        script.free(item, result)
        if (i + 1) % depth == 0:
            script.sync()


def random(script, steps, streams, blocks, size):
    """Allocates, frees, submits kernels, orders streams and waits, in random order."""
    live = [None] * blocks
    for _ in range(steps):
        i = script.random(blocks)
        stream = script.random(streams)
        dice = script.random(1000)
        if dice < 3:
            script.sync()
        elif dice < 20:
            script.order(stream, script.random(streams))
        elif not live[i]:
            live[i] = script.alloc(stream, script.random_size(512, size))
        elif dice < 400:
            script.free(live[i])
            live[i] = None
        else:
            script.kernel(stream, 1 + script.random(400 * US), live[i])


def main(spec):
    name, _, text = spec.partition(":")
    given = {key: int(value) for key, value in (part.split("=") for part in text.split(",") if part)}
    script = Script(given.pop("seed", 1))
    globals()[name](script, **{**DEFAULTS[name], **given})


if __name__ == "__main__":
    main(*sys.argv[1:])
