#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD: makes every file or mmap call of the library fail, once and from then on.

The program's output and exit status must be those without the library.  A recording that exists must be readable.
The last line is "N passed, N failed".
"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 120  # a hang; a program takes a second, on a busy machine some
ENOSPC, ENOMEM, EMFILE = 28, 12, 24
PROGRAMS = (("train", "--steps", "2"), ("ipc",), ("vmm", "expandable"), ("arrays", "shapes"))
# Without its files the library spills less: requests fail, but no byte is wrong.
SPILLING = (("spill", "random", "1", "1"), {"GPUSIM": "memory:256MiB,context:0", "GPUCACHE_CONF": "recording_size:1MiB,spill:2GiB"})
COMMANDS = b"alloc a 1048576\nalloc b 1048576\nexport b\nfree b\nfree a\n"  # of ipc


def run(shim, folder, words, nth=0, **env):
    out = os.path.join(folder, "rec.gpucache")
    for name in (out, os.path.join(folder, "count")):
        if os.path.exists(name):
            os.unlink(name)
    preload = f"{shim}:{BUILD}/libgpucache.so"
    done = subprocess.run([os.path.join(BUILD, "programs", words[0]), *words[1:]], input=COMMANDS, capture_output=True,
                          timeout=TIMEOUT_S, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{BUILD}/simcuda", "GPUSIM": "memory:1GiB", "LD_PRELOAD": preload,
                               "GPUCACHE_OUTPUT": out, "GPUCACHE_CONF": "recording_size:1MiB", "FAULT_NTH": str(nth),
                               "FAULT_COUNT": os.path.join(folder, "count"), **env})
    # Mask handles, which differ; and without a place for tags, inner blocks cannot be exported (docs/inside/IPC.md).
    done.stdout = re.sub(rb"ok [0-9a-f]{64,}|error 801", b"handle", done.stdout)
    checked = 0
    if os.path.exists(out):
        checked = subprocess.run([os.path.join(BUILD, "gpumem-report"), "check", out], capture_output=True, check=False).returncode
    return done, checked


def is_same(done, plain):
    return done.stdout == plain.stdout and done.returncode == plain.returncode


def is_sound(done, _):
    return done.returncode == 0 and b" 0 wrong, all given back" in done.stdout


def numbers(n_calls, is_well):
    """Which calls fail.  A program that spills reads the same files for each request: then every ninth is enough."""
    return [n for n in range(1, n_calls + 1) if is_well is is_same or n <= 80 or n % 9 == 0]


def main():
    n_passed = n_failed = 0
    rows = [(words, {}, is_same) for words in PROGRAMS] + [(*SPILLING, is_sound)]
    with tempfile.TemporaryDirectory() as folder:
        shim = os.path.join(folder, "shim.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, os.path.join(HERE, "shim.c"), "-ldl"], check=True)
        for words, setting, is_well in rows:
            plain, _ = run(shim, folder, words, GPUCACHE="0", **setting)
            run(shim, folder, words, **setting)
            with open(os.path.join(folder, "count"), encoding="ascii") as file:
                n_calls = int(file.read())
            for more, code in (({}, ENOMEM), ({"FAULT_ALL": "1"}, ENOSPC), ({}, EMFILE)):
                n_bad = 0
                for nth in numbers(n_calls, is_well):
                    done, checked = run(shim, folder, words, nth, FAULT_ERRNO=str(code), **more, **setting)
                    if not is_well(done, plain) or checked:
                        n_bad += 1
                        print(f"{words[0]}: call {nth} with error {code}{' and all after it' if more else ''}: status "
                              f"{done.returncode}, check {checked}: {done.stderr[-300:]!r}")
                is_good = n_calls > 10 and n_bad == 0
                n_passed, n_failed = n_passed + is_good, n_failed + (not is_good)
                print(f"{'ok' if is_good else 'FAIL'} {words[0]}: {n_calls} calls made to fail with error {code}, "
                      f"{'each and all after it' if more else 'once each'}", flush=True)
    print(f"{n_passed} passed, {n_failed} failed")
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
