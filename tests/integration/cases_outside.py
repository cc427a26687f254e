# SPDX-License-Identifier: Apache-2.0
"""Memory used outside the order of streams: by another process, or by a network card."""
from cases_same import expect_same
from harness import expect, expect_equal

WAYS = ("ipc", "dma-buf", "sync-memops", "p2p-tokens", "p2p-tokens-among-others")


def case_who_gets_a_block_outside_comes_after_the_work_of_its_old_owner(world):
    for way in WAYS:
        ours = expect_same(world, [world.program("outside"), way], sim="memory:4GiB,clock:virtual")
        expect_equal("the kernel", ours.out, f"{way}: the old owner's kernel is done\n")


def case_what_communication_libraries_register_is_what_their_partners_read(world):
    """With each library's own sequence of calls, another process reads the right contents, newly opened or already
    mapped."""
    for library in ("ucx", "openmpi", "nccl", "gdrcopy"):
        command = [world.program("registers"), library]
        plain = world.run(command, with_us=False, sim="memory:4GiB,clock:virtual")
        expect("0 of 6 right" not in plain.out and plain.status == 0, plain.out)
        for order in ("device", "fence"):
            # One line tells that the partner needs the library for small blocks, too.
            ours = world.run(command, sim="memory:4GiB,clock:virtual", GPUCACHE_CONF=f"free_order:{order}")
            expect_equal(f"{library}, free_order:{order}", (ours.status, ours.out), (0, plain.out))


def case_registering_each_block_with_a_network_card_takes_no_memory(world):
    for way in ("sync-memops", "p2p-tokens"):
        for n, size in ((1000, 4096), (600, 1500000)):
            command = [world.program("outside"), way, str(n), str(size)]
            plain = world.run(command, with_us=False, sim="memory:1GiB")
            ours = world.run(command, sim="memory:1GiB")
            expect(int(ours.out.split()[0]) >= int(plain.out.split()[0]), f"{ours.out} {plain.out}")


def case_pitched_memory_is_asked_for_with_the_padding_of_its_rows(world):
    run = world.run(world.script("pitched.py"), sim="memory:2GiB,context:0", GPUCACHE_CONF="oom_report:never")
    expect_equal("blocks, and bytes a row", (run.status, run.out), (0, "4 512\n"))
    facts = world.report_json("oom")["verdict"]["facts"]
    expect_equal("asked for, and held", (facts["asked"], facts["held"]), (512 << 20, 4 * (512 << 20)))
