# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --self-test: prints what it tried and saw, and notices what is wrong."""
import os
import re

from cases_launcher import installed, launch
from harness import expect, expect_equal

NAMES = ["cache order", "record", "kill -9", "out of memory", "tensors"]


def scratch(world):
    folder = os.path.join(world.folder, "scratch")
    os.makedirs(folder, exist_ok=True)
    return folder


def module(world, text):
    """A folder for PYTHONPATH, with a PyTorch that we wrote."""
    folder = os.path.join(world.folder, "modules")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "torch.py"), "w", encoding="ascii") as file:
        file.write(text)
    return folder


def verdicts(result):
    return dict(reversed(line) for line in re.findall(r"^(ok|FAIL|skip) +(" + "|".join(NAMES) + ") ", result.out, re.M))


def self_test(world, **extra):
    if "PYTHONPATH" not in extra:
        extra["PYTHONPATH"] = module(world, "raise ImportError\n")
    return launch(world, "--self-test", "--sim", "2GiB", TMPDIR=scratch(world), **extra)


def case_the_self_test_passes_on_the_simulated_gpu_and_leaves_nothing(world):
    # What is set for other programs does not matter.
    result = self_test(world, GPUCACHE="0", GPUCACHE_CONF="cache:off", GPUCACHE_OUTPUT="/nowhere/%p")
    expect_equal("the exit status", result.status, 0)
    expect_equal("the verdicts", verdicts(result), {**dict.fromkeys(NAMES, "ok"), "tensors": "skip"})
    expect(re.search(r"^gpucache-run \d.*\nsystem +Linux .* glibc 2\.\d+.*\n", result.out), result.out)
    expect(re.search(r"^GPU +Simulated GPU, 2\.00 GiB, compute capability 9\.0, the first of 1; CUDA \d+\.\d$", result.out, re.M), result.out)
    expect(re.search(r"640 blocks, 0 wrong bytes; \d{3} reused", result.out), result.out)
    expect(result.out.endswith("4 passed, 0 failed, 1 skipped\n"), result.out)
    expect_equal("what is left", os.listdir(scratch(world)), [])


def case_the_self_test_names_what_the_recording_lacks_and_keeps_it(world):
    installed(world)
    real = os.path.join(world.build, "gpumem-report")
    report = os.path.join(world.folder, "installed", "bin", "gpumem-report")
    os.remove(report)
    with open(report, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{real} \"$@\" | sed 's/54600078/54600077/; s/\"hit\": .*/\"hit\": 0,/; s/^WHY .*//'\n")
    os.chmod(report, 0o755)
    result = self_test(world, PYTHONPATH=module(world, "def version(): pass\nclass cuda: memory_stats = 0\n"))
    expect_equal("the exit status", result.status, 1)
    expect_equal("the verdicts", verdicts(result), dict.fromkeys(NAMES, "FAIL"))
    expect("the program holds 54600078 bytes, the recording has 54600077" in result.out, result.out)
    expect("PyTorch says nothing, the recording nothing: " in result.out, result.out)
    kept, = os.listdir(scratch(world))
    expect(result.out.splitlines()[-1].endswith(f"/{kept}") and "kill.gpucache" in os.listdir(os.path.join(scratch(world), kept)), result.out)


def case_the_self_test_says_that_there_is_no_gpu(world):
    folder = scratch(world)
    with open(os.path.join(folder, "libcuda.so.1"), "w", encoding="ascii") as file:
        file.write("no library\n")
    result = launch(world, "--self-test", LD_LIBRARY_PATH=folder, TMPDIR=folder)
    expect_equal("the exit status", result.status, 3)
    expect_equal("the last line", result.out.splitlines()[-1], "GPU      none: there is no libcuda.so.1")
    expect_equal("what is left", os.listdir(folder), ["libcuda.so.1"])


def case_the_self_test_takes_no_program(world):
    for words in (["true"], ["--off"], ["--wait"], ["-c", "cache:off"]):
        expect_equal(f"the exit status of {words}", launch(world, "--self-test", *words).status, 2)


def case_the_probe_sees_bytes_of_another_owner(world):
    probe = os.path.join(world.build, "gpucache-probe")
    right = launch(world, "--off", "--sim", "1GiB", probe, "order")
    expect_equal("the driver's own order", (right.status, right.out), (0, "640 blocks, 0 wrong bytes\n"))
    wrong = launch(world, "--off", "--sim", "1GiB", probe, "order", "naive")
    expect_equal("the exit status", wrong.status, 1)
    expect(re.fullmatch(r"640 blocks, [1-9]\d* wrong bytes\n", wrong.out), wrong.out)
