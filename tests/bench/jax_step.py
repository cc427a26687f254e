#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording the arrays costs a step of JAX: jax_step.py BUILD PYTHON [PAIRS [MODEL...]].

As torch_step.py: a row is one process on the simulated GPU, whose kernels take no time, so the ratio is an upper bound.
Steps, or as many as take 20 ms, come in pairs of which one is recorded, in an order that is drawn (jax_switch.c); the ratio
is the median of the pairs, with an interval of 95 % by bootstrap.  GPU=1 takes the time on the clock of the GPU at hand.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

from torch_step import interval

BENCH = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(BENCH))
WAYS = {"gpucache": [], "gpucache, stacks:off": ["-c", "stacks:off"]}

CHILD = """
import ctypes, json, os, random, sys, time
sys.path.insert(0, %(bench)r)
import jax_models
switch = ctypes.c_int.in_dll(ctypes.CDLL(%(switch)r), "jax_switch")
step = jax_models.step_of(%(model)r)
clock = time.perf_counter if %(gpu)r else time.process_time

def timed(on, steps):
    switch.value = 1 if on else 2
    step()  # what was recorded ends, or begins to be recorded
    switch.value = int(on)
    step()
    start = clock()
    for _ in range(steps):
        step()
    return (clock() - start) / steps

for _ in range(12):
    taken = timed(True, 1)
steps = max(1, round(0.02 / taken))

pairs = []
for _ in range(%(pairs)d):
    first = random.random() < 0.5
    taken = {on: timed(on, steps) for on in (first, not first)}
    pairs.append((taken[True], taken[False]))
print(json.dumps(pairs))
"""


def pairs_of(build, python, model, options, n_pairs, folder):
    """(recorded, not recorded) of each pair, in seconds a step."""
    switch = os.path.join(folder, "jax_switch.so")
    child = CHILD % {"bench": BENCH, "switch": switch, "model": model, "pairs": n_pairs, "gpu": bool(os.environ.get("GPU"))}
    place = [] if os.environ.get("GPU") else ["--sim", "h200"]
    run = subprocess.run([os.path.join(build, "gpucache-run"), *options, *place, "-o", os.path.join(folder, "%p.gpucache"), "--",
                          "sh", "-c", f'LD_PRELOAD="{switch}:$LD_PRELOAD" exec "$0" -c "$1"', python, child],
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def main(build, python, n_pairs=150, *models):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", TOP, "-o", os.path.join(folder, "jax_switch.so"),
                        os.path.join(BENCH, "jax_switch.c")], check=True)
        print(f"{'model':8} {'recorded by':24} {'times':>6}  {'95 % of':>13}  {'us more':>7} {'ms':>7}")
        for model in models or ("mlp", "scan", "layers", "decode"):
            for way, options in WAYS.items():
                pairs = pairs_of(os.path.abspath(build), python, model, options, int(n_pairs), folder)
                logs = [math.log(on / off) for on, off in pairs]
                low, high = interval(logs)
                print(f"{model:8} {way:24} {math.exp(statistics.median(logs)):6.3f}  {math.exp(low):.3f}-{math.exp(high):.3f}  "
                      f"{statistics.median(on - off for on, off in pairs) * 1e6:7.1f} "
                      f"{statistics.median(off for _, off in pairs) * 1e3:7.3f}", flush=True)


main(*sys.argv[1:])
