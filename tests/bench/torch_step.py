#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU time of a training step, plain and with the library: torch_step.py BUILD PYTHON [ROUNDS [STEPS]].

tests/programs/gpt.py (the size of GPT-2) trains on the simulated GPU, whose kernels take no time: a step is the CPU
time of Python, PyTorch, the simulated driver and the library, in all threads.  On a real GPU most of it overlaps with
kernels, so a ratio here is an upper bound: the slowdown of a program that is always CPU-bound.  The configurations
alternate, round by round.  A run counts by the median of its steps, a configuration by the median and the minimum of its runs.  ROUNDS 5,
STEPS 40, of which the first eight warm up.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WARM_UP = 8
WAYS = {
    "plain": ["--off"],
    "tensors:auto": [],
    "stacks:sampled": ["-c", "stacks:sampled"],
    "tensors:sampled": ["-c", "tensors:sampled"],
    "tensors:off": ["-c", "tensors:off"],
}

# gpt.py prints once per step: adds the CPU time at that moment.
TIMED = """
import builtins, json, runpy, sys, time
times, say = [], print
builtins.print = lambda *_args, **_options: times.append(time.process_time())
sys.argv = ["gpt.py", sys.argv[2]]
runpy.run_path(%r)
say(json.dumps([b - a for a, b in zip(times, times[1:])]))
"""


def step_s(build, python, options, steps, folder):
    """The median step of one run, in seconds of CPU time."""
    program = os.path.join(TOP, "tests", "programs", "gpt.py")
    run = subprocess.run([os.path.join(build, "gpucache-run"), *options, "--sim", "h200",
                          "-o", os.path.join(folder, "step.%p.gpucache"), "--", python, "-c", TIMED % program, "", str(steps)],
                         capture_output=True, text=True, check=True)
    return statistics.median(json.loads(run.stdout.splitlines()[-1])[WARM_UP:])


def main(build, python, rounds=5, steps=40):
    seen = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(rounds)):
            for way, options in WAYS.items():
                seen[way].append(step_s(build, python, options, steps, folder))
    plain = statistics.median(seen["plain"])
    for way, steps_s in seen.items():
        print(f"{way:16} {statistics.median(steps_s) * 1e3:8.2f} ms  {min(steps_s) * 1e3:8.2f} ms at least  "
              f"{statistics.median(steps_s) / plain:5.3f}  {min(steps_s) / min(seen['plain']):5.3f} of the least  "
              + " ".join(f"{s * 1e3:.1f}" for s in steps_s), flush=True)


main(*sys.argv[1:])
