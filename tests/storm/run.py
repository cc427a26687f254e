#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs storm.c, plain and with the library of this build, which may have a sanitizer in it.

  run.py BUILD_DIR [WORD...]      SECONDS_STORM=600 storms for that long, SEED= begins with that seed

The program must see what it sees without us, the recording must be readable and show no memory held, and nothing else
may be said.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import harness
from harness import expect_equal
from runner import run_cases

SIM = "memory:4GiB,devices:2,context:0"
WANTED = "bad: 0\ndevice 0 has what it had: 1\ndevice 1 has what it had: 1\n"
# vmm:on is left out: pages of both devices have addresses from one range, so a late free of one could hit the other.
CONFS = ("", "free_order:fence", "free_order:host", "record:off", "cache:off")
ROUNDS = 60
SECONDS = int(os.environ.get("SECONDS_STORM", "0")) // len(CONFS)
SEED = int(os.environ.get("SEED", "1"))
SAID = re.compile(r"gpucache: cuIpcGetMemHandle\(\w+\): this block lies inside a cached segment; .*\n")


def preload(build):
    """Our library, behind the runtime of its sanitizer: the program has none."""
    library = os.path.join(build, "libgpucache.so")
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return " ".join(re.findall(r"=> (\S*/lib[at]san\.so\S*)", needed) + [library])


def storm(world, conf, with_us=True):
    folder = os.path.join(harness.TOP, "build", "release", "tests", "storm")
    command = [os.path.join(folder, "storm"), os.path.join(folder, "plug.so"), str(SEED),
               f"{SECONDS}s" if SECONDS and with_us else str(ROUNDS)]
    options = {"ASAN_OPTIONS": "detect_leaks=0",
               "TSAN_OPTIONS": f"halt_on_error=1 suppressions={harness.TOP}/tests/tsan.supp"}
    preloaded = {"LD_PRELOAD": preload(world.build)} if with_us else {}
    done = world.run(command, with_us, sim=SIM, GPUCACHE_CONF=conf or None, **options, **preloaded)
    expect_equal("the run", (done.status, done.out, SAID.sub("", done.err)), (0, WANTED, ""))


def case_of(conf):
    def case(world):
        storm(world, conf)
        for recording in world.recordings():
            expect_equal("bytes held", world.held_bytes(recording), 0)
    return f"a storm with {conf or 'no options'} is as without us", case


def main():
    harness.TIMEOUT_S += 2 * SECONDS
    plain = [] if re.search("/[at]san$", os.path.abspath(sys.argv[1])) else [
        ("a storm without us", lambda world: storm(world, "", with_us=False))]
    return run_cases(plain + [case_of(conf) for conf in CONFS], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
