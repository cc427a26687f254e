#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random programs, kills and fuzzing in turn, for a given time.

  soak.py BUILD FUZZ [--seconds N] [--seed N]

Each round has its own seed, printed on a failure: the same command with that seed reproduces it.  Prints a line of
progress after each round; the last line is "N passed, N failed", counting each kind of work of each round.
"""
import argparse
import os
import re
import subprocess
import sys
import time

# Of a round; a third of the time each on a machine of two cores.
OPERATIONS = 1_000_000  # for each way to keep the order of cudaFree
KILLS = 30
INPUTS_S = 20

# Goals for long runs.
GOALS = (("operations", 1_000_000_000), ("kills", 10_000))


class Kind:
    """One kind of work: operations, failures, seconds."""

    def __init__(self, name, bad, command, env, done, failed):
        self.name, self.bad, self.command, self.env = name, bad, command, env
        self.done, self.failed = re.compile(done, re.M), re.compile(failed, re.M)
        self.n = self.n_bad = self.n_rounds = self.n_failed = 0
        self.seconds = 0.0

    def run(self, seed):
        start = time.monotonic()
        command = [word.replace("SEED", str(seed)) for word in self.command]
        env = {**os.environ, **{key: value.replace("SEED", str(seed)) for key, value in self.env.items()}}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        self.seconds += time.monotonic() - start
        self.n += sum(int(n) for n in self.done.findall(done.stdout))
        n_bad = sum(int(n) for n in self.failed.findall(done.stdout))
        self.n_bad += n_bad
        self.n_rounds += 1
        if done.returncode or n_bad:
            self.n_failed += 1
            print(f"FAIL {' '.join(command)} (seed {seed}, status {done.returncode})\n{done.stdout[-4000:]}"
                  f"{done.stderr[-2000:]}", flush=True)

    def rate(self):
        return self.n / self.seconds if self.seconds else 0

    def __str__(self):
        return f"{self.n:,} {self.name} ({self.rate():,.1f}/s), {self.n_bad} {self.bad}"


def duration(seconds):
    hours = seconds / 3600
    return f"{hours:,.1f} h" if hours < 48 else f"{hours / 24:,.1f} days"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("fuzz")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    kinds = [
        Kind("operations", "violations", [f"{options.build}/tests/prove/prove_reuse"],
             {"OPS": str(OPERATIONS), "SEED": "SEED", "ONLY": "shipped"}, r"^  (\d+) operations in",
             r"^(?:violations|  other problems): (\d+)"),
        Kind("kills", "unreadable", ["tests/kill/run.py", options.build, "--runs", str(KILLS), "--seed", "SEED"], {},
             r"^(\d+) passed, \d+ failed$", r"^\d+ passed, (\d+) failed$"),
        Kind("inputs", "failures", [options.fuzz, "-s", str(INPUTS_S), "-S", "SEED", "tests/fuzz/corpus", "build/fuzz"],
             {}, r": (\d+) inputs in", r"^\d+ passed, (\d+) failed$"),
    ]
    start = time.monotonic()
    seed = options.seed
    print(f"soak: seed {seed}, {options.seconds:.0f} s", flush=True)
    while not (elapsed := time.monotonic() - start) or elapsed < options.seconds:
        for kind in kinds:
            kind.run(seed)
        seed += 1
        print(f"{time.monotonic() - start:7.0f} s  " + "; ".join(str(kind) for kind in kinds), flush=True)
    for kind in kinds:
        for name, goal in GOALS:
            if kind.name == name and kind.rate():
                print(f"{goal:,} {name} take {duration(goal / kind.rate())} here")
    print(f"{sum(k.n_rounds - k.n_failed for k in kinds)} passed, {sum(k.n_failed for k in kinds)} failed")
    return any(k.n_failed for k in kinds)


if __name__ == "__main__":
    sys.exit(main())
