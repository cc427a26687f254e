# SPDX-License-Identifier: Apache-2.0
"""A program that fits with the plain driver fits with us: programs that need nearly the whole GPU."""
from harness import MIB, expect, expect_equal

SIM = "memory:25088MiB,context:0,clock:virtual"  # 24.5 GiB


def run_both(world, script, *args):
    """The output of the script without us and with us."""
    command = world.script(script) + [str(arg) for arg in args]
    plain = world.run(command, with_us=False, sim=SIM)
    ours = world.run(command, sim=SIM, GPUCACHE_CONF="oom_report:never")
    world.forget_recordings()
    expect_equal(f"{args}: the run without us", (plain.status, plain.err), (0, ""))
    expect_equal(f"{args}: the run", (ours.status, ours.err), (0, ""))
    return plain.out, ours.out


def expect_same(world, *args):
    plain, ours = run_both(world, "room.py", *args)
    expect_equal(f"what {args} got", ours, plain)


def case_blocks_of_6_and_8_mib_fill_the_gpu_as_on_the_plain_driver(world):
    for size in (6, 8):
        plain, ours = run_both(world, "room.py", "fill", size * MIB)
        # Each of the first segments leaves a remainder (docs/inside/MEMORY-POLICY.md).
        expect(int(ours) * 1000 >= int(plain) * 994, f"{ours} blocks of {size} MiB, without us {plain}")


def case_among_freed_stripes_as_many_small_blocks_fit_as_on_the_plain_driver(world):
    for size in (300000, 4 * MIB):
        plain, ours = run_both(world, "stripes.py", 4 * MIB, size, 3000)
        expect_equal(f"what fits of {size} bytes", ours, plain)


def case_among_freed_stripes_large_blocks_fit_into_what_was_not_grouped(world):
    plain, ours = run_both(world, "stripes.py", 4 * MIB, 64 * MIB, 3000)
    most = int(plain.split()[0])
    expect(int(ours.split()[0]) * 7 >= most * 5 - 7, f"{ours} blocks of 64 MiB, without us {plain}")


def case_a_freed_half_of_the_gpu_serves_other_large_blocks(world):
    expect_same(world, "large")


def case_all_that_is_said_to_be_free_is_had_in_one_piece(world):
    for part in (90, 100):
        expect_same(world, "piece", part)


def case_gib_blocks_of_varying_size_fit_on_a_nearly_full_gpu(world):
    for seed in (1, 2, 3):
        expect_same(world, "vary", seed)
