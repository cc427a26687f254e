#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""driver.py BUILD [--all]: makes every driver function that a program or the library calls fail, once and from then on.

The failing call may be the program's own or the library's.  In both cases the program must see only what it may see
without us: no failure, or the failure of a call of its own, with the driver's code.  So the run must equal one without
us in which nothing fails, or in which some call of the same function fails; a failure that the program reports names
the code. If the program does not call the function, it must notice nothing.  The recording must be readable.

With --all, fails the first three calls of each function in every program; without it the first, in the programs of
SAMPLE. The last line is "N passed, N failed".
"""
import concurrent.futures
import functools
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

BUILD = os.path.abspath(sys.argv[1])
TIMEOUT_S = 120  # a hang; a program takes a second, on a busy machine some
CODE = 999  # CUDA_ERROR_UNKNOWN, which only the injected fault returns
ALL = 1 << 20
PROGRAMS = (("train", "--steps", "2"), ("ipc",), ("vmm", "expandable"), ("vmm", "contexts"), ("arrays", "shapes"),
            ("arrays", "host"), ("arrays", "shown"), ("vmm", "after-a-cache"), ("arrays", "after-a-cache"), ("arrays", "external"),
            ("vmm", "references"), ("contexts", "ends"), ("contexts",))
SAMPLE = {("train", "--steps", "2"), ("ipc",), ("vmm", "expandable"), ("arrays", "shapes"), ("arrays", "shown"),
          ("contexts", "ends")}
CACHED = {("arrays", "shown"), ("vmm", "after-a-cache"), ("arrays", "after-a-cache")}
THREADED = {("contexts",)}  # programs with threads, whose n-th call differs between runs
COMMANDS = b"alloc a 1048576\nalloc b 1048576\nfill a 7\nlook a 1048576\nexport b\nfree b\nfree a\nalloc c 3145728\nfree c\nwait\n"


def run(folder, words, sim, with_us):
    out = os.path.join(folder, "rec.gpucache")
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    env = {**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/simcuda", "GPUSIM": f"memory:4GiB,devices:2{sim}"}
    if with_us:
        env.update(LD_PRELOAD=f"{BUILD}/libgpucache.so", GPUCACHE_OUTPUT=out, GPUCACHE_CONF="recording_size:4MiB")
    try:
        done = subprocess.run([os.path.join(BUILD, "programs", words[0]), *words[1:]], input=COMMANDS, capture_output=True,
                              timeout=TIMEOUT_S, check=False, env=env)
    except subprocess.TimeoutExpired:
        return "hung", b"", b"", 0
    # Mask what may differ: handles, and the bytes that the cache holds.
    stdout = re.sub(rb"ok [0-9a-f]{64,}", b"handle", done.stdout)
    # A free succeeds once the block is cached; the driver refuses the memory later, or never.
    if "cuMemFree" in sim:
        stdout = stdout.replace(b"free: 999", b"free: 0")
    if words in CACHED:
        stdout = re.sub(rb"device bytes: [0-9]+", b"", stdout)
    checked = 0
    if os.path.exists(out):
        checked = subprocess.run([os.path.join(BUILD, "gpumem-report"), "check", out], capture_output=True,
                                 check=False).returncode
    return done.returncode, stdout, done.stderr, checked


def calls_of(folder, words, with_us):
    with tempfile.TemporaryDirectory() as other:
        path = os.path.join(other, "calls")
        run(folder, words, f",calls:{path}", with_us)
        with open(path, encoding="ascii") as file:
            return Counter(file.read().split())


def fails(entry, nth, count):
    return f",fail:{entry}/{nth}/{CODE}/{count}"


def is_told(done):
    """True if the program ended because the driver's call failed, and reported the code or its text."""
    said = done[1] + done[2]
    return done[0] == 1 and (str(CODE).encode() in said or b"unknown error" in said)


def seen(words, done):
    return done[:1] if words in THREADED else done[:2]


def judge(words, plain, done, possible):
    """The fault, or None.  possible() yields the runs without us in which a call of the same function failed."""
    if done[3]:
        return f"check says {done[3]}"
    if seen(words, done) == seen(words, plain):
        return None
    others = possible()
    if others and (is_told(done) or seen(words, done) in [seen(words, other) for other in others]):
        return None
    return f"status {done[0]}, {done[1][-300:]!r}, {done[2][-300:]!r}"


def sweep(words, is_whole):
    n_bad = n_runs = 0
    with tempfile.TemporaryDirectory() as folder:
        plain = run(folder, words, "", False)
        own = calls_of(folder, words, False)
        entries = calls_of(folder, words, True)
        for entry, count in itertools.product(sorted(entries), (1, ALL)):
            @functools.cache
            def possible(entry=entry, count=count):
                # Our call may be part of any of the program's calls of this function.
                last = min(own[entry], 2 if words in THREADED else 12)
                return [run(folder, words, fails(entry, nth, count), False) for nth in range(1, last + 1)]

            for nth in range(1, min(entries[entry], 3 if is_whole else 1) + 1):
                n_runs += 1
                wrong = judge(words, plain, run(folder, words, fails(entry, nth, count), True), possible)
                if wrong:
                    n_bad += 1
                    print(f"{' '.join(words)}: {entry} call {nth}{' and all after it' if count > 1 else ''}"
                          f"{'' if own[entry] else ' (ours alone)'}: {wrong}", flush=True)
    return n_runs, n_bad, len(entries), sorted(set(entries) - set(own))


def main():
    is_whole = "--all" in sys.argv
    programs = PROGRAMS if is_whole else [words for words in PROGRAMS if words in SAMPLE]
    n_passed = n_failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for words, (n_runs, n_bad, n_entries, ours) in zip(programs, pool.map(lambda words: sweep(words, is_whole), programs)):
            is_good = n_runs > 10 and n_bad == 0
            n_passed, n_failed = n_passed + is_good, n_failed + (not is_good)
            print(f"{'ok' if is_good else 'FAIL'} {' '.join(words)}: {n_runs} runs, {n_entries} entries, "
                  f"{len(ours)} of them ours alone", flush=True)
    print(f"{n_passed} passed, {n_failed} failed")
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
