# SPDX-License-Identifier: Apache-2.0
"""Numbers 0, 1 and 2 are the program's, also where it has closed them: no file of ours is printed into."""
import os

from harness import expect_equal


def expect_as_without_us(world, mode, **extra):
    said = os.path.join(world.folder, "said")
    found = []
    for with_us in (False, True):
        ran = world.run([world.program("daemon"), mode], with_us=with_us, sim="memory:1GiB,context:0", **extra)
        with open(said, encoding="ascii") as file:
            found.append((ran.status, file.read().splitlines()))
        os.unlink(said)
    expect_equal("the program without us", found[0], (0, [
        "malloc: 0", "malloc: 0", "set: 0", "export: 0", "open: 0", "copy: 0", "data: right", "too much: 2", "closed: 1 1 1", "free: 0"]))
    expect_equal("the program with us", found[1], found[0])
    expect_equal("the recordings", [world.state(recording) for recording in world.recordings()], ["ended", "ended"])
    for recording in world.recordings():
        world.report("check", recording)
    world.forget_recordings()


def case_a_daemon_that_closed_its_standard_descriptors_prints_into_no_file_of_ours(world):
    expect_as_without_us(world, "early")
    expect_as_without_us(world, "early", GPUCACHE_CONF="vmm:on,oom_report:always")


def case_a_program_that_closes_them_later_exports_memory_and_prints_into_no_file_of_ours(world):
    expect_as_without_us(world, "late")
