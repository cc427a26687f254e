#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording the tensors costs a step of PyTorch: torch_step.py BUILD PYTHON [PAIRS [MODEL...]].

Each row is one process on the simulated GPU, whose kernels take no time: a step is the CPU time of Python, PyTorch, the
simulated driver and the library, in all threads.  On a real GPU most of it overlaps with kernels, so a ratio here is an
upper bound: the slowdown of a program that is always CPU-bound.  GPU=1 runs on the GPU at hand instead, and takes the
time on the clock, to the end of the kernels.

Steps, or as many as take 20 ms, come in pairs of which one is recorded, in an order that is drawn (torch_switch.c), so
neither drift nor what a process has by chance counts.  A row's ratio is the median of its pairs, with an interval of 95 %
by bootstrap; PAIRS 150.  The rows of PyTorch's own history switch that one instead, with tensors:off.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 12
HISTORY = "torch.cuda.memory._record_memory_history"
WAYS = {  # options; what switches the recording on and off
    "gpucache": ([], "switch.value = {on}"),
    "gpucache, stacks:off": (["-c", "stacks:off"], "switch.value = {on}"),
    "PyTorch's history, all stacks": (["-c", "tensors:off"], HISTORY + "('all' if {on} else None, stacks='all', max_entries=100000)"),
    "PyTorch's history, Python only": (["-c", "tensors:off"], HISTORY + "('all' if {on} else None, stacks='python', max_entries=100000)"),
}

CHILD = """
import ctypes, json, random, sys, time
sys.path.insert(0, %(bench)r)
import torch, torch_models
switch = ctypes.c_int.in_dll(ctypes.CDLL(%(switch)r), "torch_switch")
step = torch_models.step_of(%(model)r)
clock = time.perf_counter if %(gpu)r else time.process_time

def timed(on, steps):
    %(toggle)s
    step()  # brings back to the caches what the other kind of step took from them
    torch.cuda.synchronize()
    start = clock()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (clock() - start) / steps

for _ in range(%(warm_up)d):
    taken = timed(True, 1)
steps = max(1, round(0.02 / taken))

pairs = []
for _ in range(%(pairs)d):
    first = random.random() < 0.5
    taken = {on: timed(on, steps) for on in (first, not first)}
    pairs.append((taken[True], taken[False]))
print(json.dumps(pairs))
"""


def pairs_of(build, python, model, options, toggle, n_pairs, folder):
    """(recorded, not recorded) of each pair, in seconds a step."""
    switch = os.path.join(folder, "torch_switch.so")
    child = CHILD % {"bench": BENCH, "switch": switch, "model": model, "toggle": toggle.format(on="on"),
                     "pairs": n_pairs, "warm_up": WARM_UP, "gpu": bool(os.environ.get("GPU"))}
    place = [] if os.environ.get("GPU") else ["--sim", "h200"]
    run = subprocess.run([os.path.join(build, "gpucache-run"), *options, *place, "-o", os.path.join(folder, "%p.gpucache"), "--",
                          "sh", "-c", f'LD_PRELOAD="{switch}:$LD_PRELOAD" exec "$0" -c "$1"', python, child],
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def interval(logs, rounds=2000):
    """The 95 % interval of the median by bootstrap."""
    drawn = sorted(statistics.median(random.choices(logs, k=len(logs))) for _ in range(rounds))
    return drawn[rounds // 40], drawn[-rounds // 40]


def main(build, python, n_pairs=150, *models):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", os.path.join(folder, "torch_switch.so"),
                        os.path.join(BENCH, "torch_switch.c")], check=True)
        print(f"{'model':8} {'recorded by':32} {'times':>6}  {'95 % of':>13}  {'ms more':>7} {'ms':>7}")
        for model in models or ("gpt", "resnet", "lstm", "decode"):
            for way, (options, toggle) in WAYS.items():
                pairs = pairs_of(os.path.abspath(build), python, model, options, toggle, int(n_pairs), folder)
                logs = [math.log(on / off) for on, off in pairs]
                low, high = interval(logs)
                print(f"{model:8} {way:32} {math.exp(statistics.median(logs)):6.3f}  {math.exp(low):.3f}-{math.exp(high):.3f}  "
                      f"{statistics.median(on - off for on, off in pairs) * 1e3:7.2f} "
                      f"{statistics.median(off for _, off in pairs) * 1e3:7.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
