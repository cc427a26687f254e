# SPDX-License-Identifier: Apache-2.0
"""Stream-ordered memory, the driver's pools, and graphs that own memory."""
import os
import re
import sys

from harness import MIB, expect, expect_equal

# Takes from a pool of 300 MiB until it refuses, and dies.
BOUNDED = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaFree(None)
props = (ctypes.c_uint64 * 11)(1, 1 << 0, 0, 300 << 20)  # pinned; on device 0; maxSize
pool, pointer = ctypes.c_void_p(), ctypes.c_uint64()
if cuda.cuMemPoolCreate(ctypes.byref(pool), props):
    sys.exit(77)
while not cuda.cuMemAllocFromPoolAsync(ctypes.byref(pointer), ctypes.c_size_t(64 << 20), pool, None):
    pass
os._exit(1)
"""

PROGRAMS = ("async", "async_per_thread")

# Modes that fill a device of 1 GiB, where the ladder decides what they get.
FULL = ("full-pool", "full-graph", "after-free", "graph-after-free")

# Steps at which the driver cannot be queried: the pool is destroyed, or a query would break a capture.
UNTOLD = (("destroyed-pool", "written and read"), ("beside-a-capture", "cudaMallocAsync"),
          ("beside-a-capture", "cudaFreeAsync"))


def newest(world):
    return max(world.recordings(), key=os.path.getmtime)


def modes(world):
    return [m for m in world.run([world.program("async"), "list"], with_us=False).out.split()
            if m not in FULL]


def booked_bytes(world, recording):
    """The device memory of this process by our accounting: by kind, and in total."""
    balance = world.report_json("summary", recording)["devices"][0]["balance"]
    names = ("requested", "rounding", "pending", "cached", "direct")
    kinds = {kind["kind"]: kind["bytes"] for kind in balance["direct_kinds"]}
    expect_equal("the sum of the kinds", sum(kinds.values()), balance["direct_bytes"])
    return kinds, sum(balance[name + "_bytes"] for name in names)


def case_stream_ordered_memory_behaves_as_without_us(world):
    for program in PROGRAMS:
        for mode in modes(world):
            command = [world.program(program), mode]
            plain = world.run(command, with_us=False)
            ours = world.run(command)
            expect_equal(f"{program} {mode}", (ours.status, ours.out), (plain.status, plain.out))
            expect_equal("the exit status", ours.status, 0)
            expect("WRONG" not in ours.out, f"{mode}: {ours.out}")


def case_stream_ordered_memory_is_in_the_books_to_the_byte_after_each_step(world):
    program = world.program("async")
    for mode in modes(world):
        if mode == "mixed":  # the cache rounds
            continue
        steps = re.findall(r"^(.*): -?\d+, used (\d+)$",
                           world.run([program, mode], with_us=False).out, re.M)
        expect(len(steps) >= 3, f"{mode} has {len(steps)} steps")
        for i, (what, used) in enumerate(steps, 1):
            known = set(world.recordings())
            expect_equal("the exit status", world.run([program, mode, str(i)]).status, 0)
            recording = (set(world.recordings()) - known).pop()
            kinds, booked = booked_bytes(world, recording)
            expect(booked == int(used) or (mode, what) in UNTOLD,
                   f"{mode}, step {i}, {what}: {booked} in the books {kinds}, {used} used")


def case_idle_pools_and_graphs_have_lines_of_their_own(world):
    world.run([world.program("async"), "idle-pool", "9"])
    kinds, _ = booked_bytes(world, newest(world))
    expect_equal("the kinds", kinds, {"stream-ordered memory": 8 * MIB, "idle in driver pools": 120 * MIB})
    text = world.report("summary", newest(world)).out
    expect("idle in driver pools" in text, f"the summary lacks a line: {text}")


def run_full(world, mode, program="async"):
    command = [world.program(program), mode]
    plain = world.run(command, with_us=False, sim="memory:1GiB")
    ours = world.run(command, sim="memory:1GiB")
    return plain, ours


def case_memory_idle_in_the_drivers_pools_is_given_back_before_we_say_out_of_memory(world):
    for mode in ("full-pool", "full-graph"):
        plain, ours = run_full(world, mode)
        expect("cudaMalloc of 600 MiB: 2\n" in plain.out, f"{mode} without us: {plain.out}")
        expect("cudaMalloc of 600 MiB: 0\n" in ours.out, f"{mode} with us: {ours.out}")
        expect_equal("the rest", ours.out.replace("MiB: 0", "MiB: 2"), plain.out)
        expect_equal("calls that the ladder saved",
                     world.count_calls(newest(world))["rescued"], 1)


def case_our_cache_goes_back_for_stream_ordered_memory_and_graphs(world):
    for program in PROGRAMS:
        for mode in ("after-free", "graph-after-free"):
            plain, ours = run_full(world, mode, program)
            expect(": 0\n" in plain.out, f"{mode} without us: {plain.out}")
            expect_equal(f"{program} {mode}", ours.out, plain.out)
    run_full(world, "after-free")
    text = world.report_json("oom", newest(world))
    kinds = {kind["kind"]: kind["bytes"] for kind in text["balance"]["direct_kinds"]}
    expect_equal("the kinds at the failure", kinds["stream-ordered memory"], 600 * MIB)
    expect_equal("their sum", sum(kinds.values()), text["balance"]["direct_bytes"])


def case_a_pool_that_its_own_maximum_stops_is_told_with_both_numbers(world):
    result = world.run([sys.executable, "-c", BOUNDED], sim="memory:1GiB")
    expect_equal("the exit status", result.status, 1)
    said = " ".join(result.err.split())
    expect("limit (certain): the memory pool that was asked may hold 300.00 MiB (maxSize of CUmemPoolProps): 256.00 MiB is "
           "live in it, and 64.00 MiB was asked for" in said and "SHORT by 20.00 MiB" in said, result.err)
