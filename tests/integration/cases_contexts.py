# SPDX-License-Identifier: Apache-2.0
"""Several contexts, ordinary and green ones, of several devices."""
from harness import expect_equal


def case_contexts_come_and_go_in_many_threads_as_without_us(world):
    sim = "memory:4GiB,devices:2"
    command = [world.program("contexts")]
    plain = world.run(command, with_us=False, sim=sim)
    wanted = "bad: 0\ndevice 0 has what it had: 1\ndevice 1 has what it had: 1\n"
    expect_equal("the run without us", (plain.status, plain.out, plain.err), (0, wanted, ""))
    for conf in ("", "cache:off", "free_order:host"):
        ours = world.run(command, sim=sim, GPUCACHE_CONF=conf or None)
        expect_equal("the run", (ours.status, ours.out, ours.err), (0, wanted, ""))
        expect_equal("bytes held", world.held_bytes(), 0)
        world.forget_recordings()


def case_work_of_green_contexts_keeps_memory_from_its_next_owner(world):
    sim = "memory:4GiB,clock:virtual,copy_us_per_mib:1000"
    plain = world.run(world.script("green.py"), with_us=False, sim="gpu:t4," + sim)
    ours = world.run(world.script("green.py"), sim=sim)
    wanted = ["freed in the primary context: 1", "freed in another green context: 1", "after a wait for that one: 1",
              "with the primary one's stream: 1", "kept: 7"]
    expect_equal("the run without us", (plain.status, plain.out.splitlines(), plain.err), (0, wanted, ""))
    expect_equal("the run", (ours.status, ours.out.splitlines(), ours.err), (0, wanted, ""))
    expect_equal("bytes held", world.held_bytes(), 0)
    unsafe = world.run(world.script("green.py"), sim=sim, LD_PRELOAD=world.without_fences())
    wrong = [line.replace("1", "2") for line in wanted[:4]] + wanted[4:]
    expect_equal("the run without fences", unsafe.out.splitlines(), wrong)
