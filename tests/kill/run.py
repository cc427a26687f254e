#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends a busy program at random moments, in many ways, and compares each recording with its model.

  run.py BUILD [--runs N] [--seed N]

Prints a table of the causes and, as its last line, "N passed, N failed": one for each run.  The memory
cgroup needs the right to make one; without it those runs end by a limit on CPU time too.
"""
import argparse
import concurrent.futures
import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

THREADS = 4
MODEL_SLOTS = 96  # as in model.h
TIMEOUT_S = 60
MIB = 1 << 20
KILLED = -signal.SIGKILL

# A cause: its part of a hundred runs, and the exit statuses that it leaves.  "just born" is a SIGKILL as soon
# as the file has its name; RLIMIT_CPU counts whole seconds, so its moment is chosen by what the threads do.
CAUSES = {
    "SIGKILL": (22, (KILLED,)),
    "SIGKILL, just born": (12, (KILLED,)),
    "SIGSEGV": (17, (-signal.SIGSEGV,)),
    "abort": (17, (-signal.SIGABRT,)),
    "_exit": (16, (9,)),
    "memory cgroup": (8, (KILLED,)),
    "RLIMIT_CPU": (8, (KILLED,)),
}
INSIDE = {"SIGSEGV": "segv", "abort": "abort", "_exit": "exit", "memory cgroup": "fill"}


class MemoryGroup:
    """The memory cgroup of one run, version 1 or 2."""

    @classmethod
    def make(cls, name, limit):
        for top, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = cls()
            group.path = os.path.join(top, name)
            if not os.path.isdir(top):
                continue
            try:
                os.mkdir(group.path)
            except OSError:
                continue
            try:
                # Not "w": where this is no cgroup at all, the file is not there and must not be made.
                with open(os.path.join(group.path, file), "r+", encoding="ascii") as limits:
                    limits.write(str(limit))
                return group
            except OSError:
                group.remove()
        return None

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as procs:
            procs.write("0")

    def remove(self):
        try:
            os.rmdir(self.path)
        except OSError:
            pass


class Run:
    def __init__(self, build, top, number, cause, seed):
        self.build = build
        self.folder = os.path.join(top, str(number))
        self.number = number
        self.cause = cause
        self.random = random.Random(seed * 1000003 + number)
        self.group = None

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUCACHE", "GPUSIM", "LD_"))}
        env["LD_LIBRARY_PATH"] = os.path.join(self.build, "simcuda")
        env["LD_PRELOAD"] = os.path.join(self.build, "libgpucache.so")
        env["GPUSIM"] = "memory:32GiB"
        env["GPUCACHE_OUTPUT"] = os.path.join(self.folder, "rec-%p.gpucache")
        # In the small one the ring of events goes round many times.
        env["GPUCACHE_CONF"] = ("recording_size:1MiB,stacks:all", "recording_size:8MiB")[self.number % 2]
        return env

    def before_exec(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.group:
            self.group.enter()
        elif self.cause in ("RLIMIT_CPU", "memory cgroup"):
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))

    def command(self):
        command = [os.path.join(self.build, "tests/kill/churn"), os.path.join(self.folder, "model"),
                   str(self.random.randrange(1 << 30)), str(THREADS)]
        how = INSIDE.get(self.cause)
        return command + ([how, str(self.random.randrange(1, 40_000))] if how else [])

    def recordings(self):
        return glob.glob(os.path.join(self.folder, "rec-*.gpucache"))

    def wait_until(self, child, is_true):
        deadline = time.monotonic() + TIMEOUT_S
        while not is_true() and child.poll() is None and time.monotonic() < deadline:
            pass

    def is_busy(self):
        try:
            with open(os.path.join(self.folder, "model"), "rb") as model:
                return model.read(8)[4:8] == b"\1\0\0\0"
        except OSError:
            return False

    def end(self, child):
        """By a signal of ours where the program does not end itself; its exit status."""
        if self.cause == "SIGKILL, just born":
            self.wait_until(child, self.recordings)
            child.kill()
        elif self.cause == "SIGKILL":
            self.wait_until(child, self.is_busy)
            time.sleep(self.random.uniform(0, 0.04))
            child.kill()
        return child.wait(timeout=TIMEOUT_S)

    def compare(self, recording, model="model"):
        """The status and the words of the comparison."""
        done = subprocess.run([os.path.join(self.build, "tests/kill/match"), recording,
                               os.path.join(self.folder, model)],
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        return done.returncode, done.stdout.strip() or f"match: status {done.returncode}"

    def finds_a_mistake(self):
        """Changes the address of a held block in the model: the comparison must fail."""
        with open(os.path.join(self.folder, "model"), "rb") as file:
            model = bytearray(file.read())
        slot_in_flight = int.from_bytes(model[12:16], "little")
        for slot in range(MODEL_SLOTS):
            at = 8 + 24 + 16 * slot
            if slot != slot_in_flight and any(model[at:at + 8]):
                model[at] ^= 1
                with open(os.path.join(self.folder, "moved"), "wb") as file:
                    file.write(model)
                status, said = self.compare(self.recordings()[0], "moved")
                return status == 1 and "missing" in said
        return False

    def look(self):
        """(was it opened, what the comparison said)"""
        found = self.recordings()
        if len(found) != 1:
            return False, f"{len(found)} recordings"
        report = subprocess.run([os.path.join(self.build, "gpumem-report"), "summary", found[0]],
                                capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        ended = "exited without cleanup" if self.cause == "_exit" else "killed"
        if report.returncode != 0 or ended not in report.stdout:
            return False, f"gpumem-report: status {report.returncode}: {report.stderr.strip()}"
        status, said = self.compare(found[0])
        return status in (0, 1), said

    def go(self):
        """(opened, matched, what was said)"""
        os.mkdir(self.folder)
        if self.cause == "memory cgroup":
            self.group = MemoryGroup.make(f"gpucache-kill-{os.getpid()}-{self.number}",
                                          self.random.randrange(24, 48) * MIB)
        with open(os.path.join(self.folder, "stderr"), "wb") as log:
            child = subprocess.Popen(self.command(), env=self.environment(), preexec_fn=self.before_exec,
                                     cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = self.end(child)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return False, False, "did not end"
        if self.group:
            self.group.remove()
        if status not in CAUSES[self.cause][1]:
            with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as log:
                return False, False, f"ended with status {status}: {log.read()[-300:]}"
        opened, said = self.look()
        return opened, said.startswith("matched"), said


class Row:
    def __init__(self):
        self.n = self.opened = self.matched = self.live = self.flight = self.torn = self.holes = 0

    def add(self, opened, matched, said):
        self.n += 1
        self.opened += opened
        self.matched += matched
        numbers = re.search(r"live (\d+) flight (\d+) torn (\d+) holes (\d+)$", said)
        if numbers:
            live, flight, torn, holes = map(int, numbers.groups())
            self.live += live
            self.flight += flight
            self.torn += torn
            self.holes += holes

    def text(self, name):
        return (f"{name:<20}{self.n:>5}{self.opened:>8}{self.matched:>9}{self.live:>8}"
                f"{self.flight:>8}{self.torn:>6}{self.holes:>7}")


def share(n_runs):
    """The cause of each run: every cause at least once, in the proportions of CAUSES."""
    order = []
    for cause, (part, _) in CAUSES.items():
        order += [cause] * max(1, n_runs * part // 100)
    return (order + ["SIGKILL"] * n_runs)[:max(n_runs, len(CAUSES))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    top = tempfile.mkdtemp(prefix="gpucache-kill-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    print(f"seed {options.seed}")
    runs = [Run(build, top, number, cause, options.seed) for number, cause in enumerate(share(options.runs))]
    rows = {cause: Row() for cause in CAUSES}
    failures = 0
    is_tried = False
    with_group = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for run, (opened, matched, said) in zip(runs, pool.map(Run.go, runs)):
            rows[run.cause].add(opened, matched, said)
            with_group |= run.group is not None
            if matched and not is_tried and run.cause == "SIGKILL":
                is_tried = True
                matched, said = run.finds_a_mistake(), "the comparison does not find a block that was moved"
            if matched:
                shutil.rmtree(run.folder, ignore_errors=True)
            else:
                failures += 1
                print(f"FAIL run {run.number}, {run.cause}: {said}; see {run.folder}", flush=True)
    if not with_group:
        print("no memory cgroup can be made here: those runs were ended by RLIMIT_CPU")
    print(f"{'ended by':<20}{'runs':>5}{'opened':>8}{'matched':>9}{'live':>8}{'flight':>8}{'torn':>6}{'holes':>7}")
    for cause, row in rows.items():
        print(row.text(cause))
    if not failures:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{len(runs) - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
