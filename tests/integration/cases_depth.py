# SPDX-License-Identifier: Apache-2.0
"""Threads and coroutines with small stacks call us.  Our own frames are bounded by tests/lint/check_depth.py; here is what they
need with the driver's, the unwinder's and the loader's."""
import os

from harness import Skip, expect, expect_equal

SIM = "memory:1GiB"

# A thread of 16 KiB has 13 left for the program and us: the rest is thread-local data.
MOST = 8 << 10
MOST_OF_A_FAILURE = 12 << 10

OPTIONS = ("oom_report:auto", "oom_report:always", "oom_report:never", "stacks:off", "record:off", "cache:off", "vmm:on", "python:off",
           "free_order:fence", "limit:512MiB")


def need_release(world):
    if os.path.basename(world.build) != "release":
        raise Skip("a sanitizer needs stack itself")


def expect_same(world, mode, **extra):
    command = [world.program("depth"), mode]
    plain = world.run(command, with_us=False, sim=SIM)
    ours = world.run(command, sim=SIM, **extra)
    expect_equal(f"{mode} {extra}", (ours.status, ours.out), (plain.status, plain.out))
    world.forget_recordings()


def case_requests_fail_in_threads_and_coroutines_of_16_KiB(world):
    need_release(world)
    for option in OPTIONS:
        expect_same(world, "small", GPUCACHE_CONF=option)


def case_the_first_call_of_a_process_comes_from_a_thread_of_16_KiB(world):
    need_release(world)
    for option in OPTIONS:
        expect_same(world, "first", GPUCACHE_CONF=option)
    # The usual place of recordings, where those of ended processes are cleaned up.
    expect_same(world, "first", GPUCACHE_OUTPUT=None)


def case_a_thread_of_16_KiB_ends_the_process(world):
    need_release(world)
    for option in (*OPTIONS, "leak_report:on"):
        expect_same(world, "exit", GPUCACHE_CONF=option)


def expect_depths(text):
    found = {name: int(size) for name, size in (line.split(": ") for line in text.splitlines())}
    deepest = {True: ("", 0), False: ("", 0)}
    for name, size in found.items():
        is_failure = name.startswith("failure")
        expect(size <= (MOST_OF_A_FAILURE if is_failure else MOST), f"{name} takes {size} bytes of stack")
        deepest[is_failure] = max(deepest[is_failure], (name, size), key=lambda pair: pair[1])
    return ", ".join(f"{name} {size} B" for name, size in deepest.values())


def case_no_call_takes_more_than_8_KiB_of_stack_and_no_failing_one_more_than_12(world):
    need_release(world)
    native = world.run([world.program("depth"), "measure"], sim=SIM)
    expect_equal("the exit status", native.status, 0)
    python = world.run([*world.script("depth.py"), world.program("libforeign.so")], sim=SIM)
    expect_equal("Python's exit status", (python.status, python.err[-300:] if python.status else ""), (0, ""))
    return f"{expect_depths(native.out)}; Python: {expect_depths(python.out)}"
