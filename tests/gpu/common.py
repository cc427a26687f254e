# SPDX-License-Identifier: Apache-2.0
"""Shared by several steps."""
from harness import Skip, expect_equal


def expect_same(world, command, data=None, key="", **extra):
    plain = world.run(command, with_us=False, **extra)
    ours = world.run(command, **extra)
    expect_equal("the exit status without gpucache", plain.status, 0)
    expect_equal("the exit status", ours.status, 0)
    expect_equal("stdout", ours.out, plain.out)
    if data is not None:
        counts = world.count_calls(world.recordings()[-1])
        data[key] = f"{counts['malloc']} allocations, {counts['driver_malloc']} by the driver"
    return plain, ours


def need_runtime(suite):
    if not suite.sim and 13 not in suite.cudart:
        raise Skip("there is no libcudart.so.13")
