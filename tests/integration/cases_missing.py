# SPDX-License-Identifier: Apache-2.0
"""Missing pages of a recording, as after a crash of the machine: reported since format 1.3, never silently ignored."""
import os
import signal

from harness import expect, expect_equal

PAGE = 4096
VIEWS = (["summary"], ["oom"], ["leaks"], ["check"], ["summary", "--json"])


def seen(world, path):
    """The output of each view, without the file's name."""
    answers = []
    for view in VIEWS:
        result = world.report(*view, path, status=None)
        answers.append((result.status, result.out.replace(path, "FILE")))
    return answers


def expect_each_missing_page_is_told(world, recording):
    """Returns (pages in use, pages whose loss changes no view)."""
    with open(recording, "rb") as file:
        whole = bytearray(file.read())
    hurt = os.path.join(world.folder, "hurt.gpucache")
    with open(hurt, "wb") as file:
        file.write(whole)
    before = seen(world, hurt)
    expect(all(status in (0, 3) for status, _ in before), f"the whole one: {before}")
    n_used = n_same = 0
    for at in range(0, len(whole), PAGE):
        page = whole[at:at + PAGE]
        if not any(page):
            continue
        n_used += 1
        with open(hurt, "r+b") as file:
            file.seek(at)
            file.write(bytes(PAGE))
        after = seen(world, hurt)
        with open(hurt, "r+b") as file:
            file.seek(at)
            file.write(page)
        told = [status for status, _ in after].count(4)
        if after == before:
            n_same += 1
        else:
            expect(told == len(VIEWS), f"without the page at {at} {told} of {len(VIEWS)} views are told: "
                   + str([(was[0], now[0]) for was, now in zip(before, after)]))
    expect_equal("the whole one again", seen(world, hurt), before)
    expect(n_used > 15, f"only {n_used} pages are in use")
    return f"{n_used} pages, {n_same} of them without a difference"


def case_each_missing_page_of_a_run_that_leaked_is_told(world):
    world.run([world.program("train"), "--steps", "90", "--leak"])
    return expect_each_missing_page_is_told(world, world.recording())


def case_each_missing_page_of_a_run_that_ran_out_of_memory_is_told(world):
    world.run([*world.script("train.py"), "--oom"], sim="memory:1GiB,devices:2",
              GPUCACHE_CONF="recording_size:1MiB,stakcs:all")
    return expect_each_missing_page_is_told(world, world.recording())


def case_each_missing_page_of_a_killed_run_of_several_gpus_is_told(world):
    child, _ = world.start_and_hold([*world.script("train.py"), "--hold-at", "3"], sim="memory:4GiB,devices:4")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return expect_each_missing_page_is_told(world, world.recording())
